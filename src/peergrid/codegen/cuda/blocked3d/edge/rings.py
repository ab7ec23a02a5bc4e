"""Where an edge tile of a 3D pass keeps its planes in shared memory: a ring for each state field and step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.step_plan import Rows, StepPlan, ring, step_plan
from peergrid.stencil import Problem

WIDTH = 32


@dataclass(frozen=True)
class EdgeShape3D:
    """Steps of a pass, rows of a tile (redundant ones included), warps of a block, planes loaded ahead."""

    steps: int
    height: int = 16
    warps: int = 8
    ahead: int = 2


@dataclass(frozen=True)
class EdgeRings3D:
    """The rings of one problem and shape."""

    problem: Problem
    shape: EdgeShape3D

    @cached_property
    def plan(self) -> StepPlan:
        return step_plan(self.problem)

    @cached_property
    def pad(self) -> int:
        """Values before and after all rings that reads beyond a tile may touch (they are never used)."""
        reads = [r.offset for stage in self.problem.stages for u in stage.updates for r in u.reads]
        return max((abs(dy) * WIDTH + abs(dx) for _, dy, dx in reads), default=0)

    @property
    def plane(self) -> int:
        """Values of a plane in shared memory."""
        return self.shape.height * WIDTH

    def depth(self, rows: Rows, first: bool) -> int:
        """How many planes a ring holds; `first`: of those loaded from memory."""
        if rows.made:
            return rows.age + 1
        if first:
            return self.shape.ahead + rows.age + 1
        left = self.plan.final[rows.field]
        return max(self.plan.lag - left.lag + rows.age, left.age) + 1

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """Where the rings of each kind begin in shared memory and how far apart those of two steps are, in values.

        `given`: of a state field at each step's beginning, from step 1 on (and what the last step leaves);
        `loaded`: of step 0; `between`: made inside a step.
        """
        at = self.pad
        found: dict[str, tuple[int, int]] = {}
        for name in self.problem.state:
            rows = self.plan.given[name]
            found[f"loaded {name}"] = (at, 0)
            at += self.depth(rows, first=True) * self.plane
            size = self.depth(rows, first=False) * self.plane
            found[f"given {name}"] = (at, size)
            at += size * self.shape.steps
        for rows in self.plan.between:
            size = self.depth(rows, first=False) * self.plane
            found[f"between {rows.place}"] = (at, size)
            at += size * self.shape.steps
        found["end"] = (at + self.pad, 0)
        return found

    def loaded(self, name: str) -> tuple[int, int]:
        """Where the ring of a field begins whose planes come from memory, and how many it holds."""
        return self.starts[f"loaded {name}"][0], self.depth(self.plan.given[name], first=True)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.starts["end"][0] * self.problem.itemsize

    def ring(self, rows: Rows) -> tuple[str, str]:
        """The text of where the ring of step `t` begins, and of a plane's place in it (to be filled with the plane)."""
        return ring(self, rows)
