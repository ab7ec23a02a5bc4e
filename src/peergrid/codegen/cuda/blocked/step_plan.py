"""One step of a problem for a pipeline of warps: how far each stage lags, and which rings of rows lie in between.

Each warp makes one step, a fixed number of rows behind the warp of the step before. A stage finds rows of its own step
at once, rows that another warp made only after the next barrier, so one row later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from peergrid.stencil import Problem, Stage
from peergrid.stencil.expr import Read


@dataclass(eq=False)
class Rows:
    """Rows of one state field; `lag` rows behind the newest that the step is given, `age` the oldest that is read.

    made: written by a stage of the step (else by the step before); place: its number among those of the same kind.
    """

    field: str
    lag: int
    made: bool
    place: int
    age: int = 0


@dataclass(frozen=True)
class StagePlan:
    """A stage: its lag, where it writes its targets, where it finds each state field."""

    number: int
    stage: Stage
    lag: int
    targets: Mapping[str, Rows]
    before: Mapping[str, Rows]

    def in_place(self, target: str) -> bool:
        """Whether the stage changes rows that an earlier stage of the same step made."""
        return self.targets[target] is self.before[target]


@dataclass(frozen=True)
class StepPlan:
    """The stages of one step, what it is given, what it makes in between, and what it leaves, `lag` rows behind."""

    stages: tuple[StagePlan, ...]
    given: Mapping[str, Rows]
    between: tuple[Rows, ...]
    final: Mapping[str, Rows]
    lag: int

    def last_stage(self, field: str) -> int:
        """The place in `stages` of the last stage that writes the field."""
        return max(k for k, plan in enumerate(self.stages) if field in plan.targets)


def step_plan(problem: Problem, norm: str | None = None) -> StepPlan:
    """The smallest lags at which every read finds its row; of the field `norm` the row before the step is kept, too."""
    given = {name: Rows(name, 0, made=False, place=number) for number, name in enumerate(problem.state)}
    current, made, stages = dict(given), list[Rows](), list[StagePlan]()
    for number, stage in enumerate(problem.stages):
        reads = {r for u in stage.updates for r in u.reads if r.field in current}
        reads |= {Read(target, (0,) * problem.grid.ndim) for target in stage.targets}
        lag = max(_needed(problem, current[r.field], r) for r in reads)
        before = dict(current)
        untouched = {name for name, rows in before.items() if rows.age == 0}
        for read in reads:
            rows = before[read.field]
            rows.age = max(rows.age, lag - reach_down(problem, read) - rows.lag)
        for target in stage.targets:
            current[target] = _written(before[target], lag, target in untouched and _own_cell(target, reads))
            if current[target] is not before[target]:
                made.append(current[target])
        stages.append(StagePlan(number, stage, lag, {t: current[t] for t in stage.targets}, before))
    if norm is not None:
        given[norm].age = max(given[norm].age, current[norm].lag)
    between = [rows for rows in made if rows is not current[rows.field]]
    for place, rows in enumerate(between):
        rows.place = place
    return StepPlan(tuple(stages), given, tuple(between), current, max(plan.lag for plan in stages))


def reach_down(problem: Problem, read: Read) -> int:
    """The smallest row offset that a read may mean; beyond a reflecting edge it means the mirrored one."""
    offset = read.offset[0]
    return -abs(offset) if problem.grid.boundary[0] == "reflecting" else offset


def reach_up(problem: Problem, read: Read) -> int:
    """The largest row offset that a read may mean."""
    offset = read.offset[0]
    return abs(offset) if problem.grid.boundary[0] == "reflecting" else offset


def _needed(problem: Problem, rows: Rows, read: Read) -> int:
    return rows.lag + reach_up(problem, read) + (0 if rows.made else 1)


def _own_cell(target: str, reads: set[Read]) -> bool:
    """Whether the target is read at the cell being written only."""
    return not any(any(read.offset) for read in reads if read.field == target)


def _written(before: Rows, lag: int, private: bool) -> Rows:
    """The rows that a stage writes: those before, changed in place, where no other cell and no later row needs them."""
    if before.made and before.lag == lag and private:
        return before
    return Rows(before.field, lag, made=True, place=before.place)


class Rings(Protocol):
    """An edge kernel's rings in shared memory: where each kind begins, and how many rows (planes in 3D) one holds."""

    @property
    def plan(self) -> StepPlan: ...

    @property
    def starts(self) -> dict[str, tuple[int, int]]: ...

    def depth(self, rows: Rows, first: bool) -> int: ...


def ring(rings: Rings, rows: Rows) -> tuple[str, str]:
    """The text of where the ring of step `t` begins, and of a row's place in it (to be filled with the row)."""
    name, late = rows.field, rings.depth(rows, first=False)
    if not rows.made:
        early, (start, size) = rings.depth(rows, first=True), rings.starts[f"given {name}"]
        base = f"(t ? {start} + (t - 1) * {size} : {rings.starts[f'loaded {name}'][0]})"
        return base, f"(t ? pg_place<{late}>({{row}}) : pg_place<{early}>({{row}}))"
    if rows is rings.plan.final[name]:
        start, size = rings.starts[f"given {name}"]
        return f"({start} + t * {size})", f"pg_place<{rings.depth(rings.plan.given[name], first=False)}>({{row}})"
    start, size = rings.starts[f"between {rows.place}"]
    return f"({start} + t * {size})", f"pg_place<{late}>({{row}})"
