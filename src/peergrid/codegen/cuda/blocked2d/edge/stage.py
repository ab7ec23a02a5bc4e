"""The text of one stage in an edge tile of a 2D pass, for the step of warp `t`: a row of shared memory is advanced.

A cell takes the updates whose boxes hold it one after another, from its value before the stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.step_plan import Rows, StagePlan
from peergrid.codegen.cuda.blocked2d.edge.results import EdgeResults2D
from peergrid.codegen.cuda.blocked2d.edge.rings import EdgeRings2D
from peergrid.codegen.cuda.blocked2d.places import in_memory, inside, mirrored, wrapped
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.cells import assigned
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update


@dataclass(frozen=True)
class EdgeStage2D:
    """The text of one stage of all steps."""

    rings: EdgeRings2D
    number: int

    @property
    def plan(self) -> StagePlan:
        return self.rings.plan.stages[self.number]

    @property
    def problem(self) -> Problem:
        return self.rings.problem

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    def lines(self) -> Iterator[str]:
        if all(update.box.empty for update in self.plan.stage.updates) and all(
            self.plan.in_place(target) for target in self.plan.targets
        ):
            return
        yield f"      {{  // stage {self.plan.number}"
        yield f"        const int y = r - t * {self.rings.plan.lag} - {self.plan.lag};"
        yield "        if (y >= first && y < last) {"
        yield from self._rows()
        yield from self._row_tests()
        yield "          for (int c = lane; c < width; c += 32) {"
        yield from self._cell()
        yield "          }"
        yield "          __syncwarp();"
        yield from EdgeResults2D(self.rings, self.number).lines()
        yield "        }"
        yield "      }"

    def _rows(self) -> Iterator[str]:
        """Pointers to the rows that the stage reads and writes."""
        offsets = {(r.field, r.offset[0]) for u in self.plan.stage.updates for r in u.reads}
        offsets |= {(target, 0) for target in self.plan.targets}
        for name, offset in sorted(offsets):
            row = mirrored(self.problem, f"y + {offset}", 0) if offset else "y"
            if name in self.plan.before:
                yield self._row(self.plan.before[name], tag_of(offset), row, "const R*")
            elif name in self.rings.coefficients:
                yield self._kept(name, tag_of(offset), row)
        for rows in self.plan.targets.values():
            yield self._row(rows, "w", "y", "R*")

    def _row(self, rows: Rows, tag: str, row: str, kind: str) -> str:
        base, place = self.rings.ring(rows)
        where = f"{base} + {place.format(row=row)} * {self.rings.stride} + {self.rings.pad}"
        return f"          {kind} const {pointer(self.arguments, rows.field, tag)} = s + {where};"

    def _kept(self, name: str, tag: str, row: str) -> str:
        start, depth = self.rings.starts[f"kept {name}"][0], self.rings.coefficients[name]
        where = f"{start + self.rings.pad} + pg_place<{depth}>({row}) * {self.rings.stride}"
        return f"          const R* const {pointer(self.arguments, name, tag)} = s + {where};"

    def _row_tests(self) -> Iterator[str]:
        """Which updates concern the row."""
        if declared := wrapped(self.problem, 0):
            yield f"          {declared}"
        for k, update in enumerate(self.plan.stage.updates):
            yield f"          const bool in{k} = {inside(self.problem, update, 0)}{self._near(update)};"

    def _near(self, update: Update) -> str:
        """Whether the tile's columns reach the update's, to be told once for a whole row."""
        if self.problem.grid.periodic[1] or update.box.shape[1] * 2 > self.problem.grid.shape[1]:
            return ""
        lo, hi = self.arguments.bounds(update, 1)
        return f" && x0 < {hi} && x0 + width > {lo}"

    def _cell(self) -> Iterator[str]:
        """One cell of the row."""
        yield "            const int x = x0 + c;"
        if declared := wrapped(self.problem, 1):
            yield f"            {declared}"
        for k, target in enumerate(self.plan.targets):
            value, test = self._read(Read(target, (0, 0))), self.rings.confined.test(target)
            yield f"            R n{k} = {'R(0)' if test else value};"
            if test:
                yield f"            {test}n{k} = {value};"
        for k, update in enumerate(self.plan.stage.updates):
            yield from self._update(k, update)
        for k, name in enumerate(self.plan.targets):
            yield f"            {self.rings.confined.test(name)}{pointer(self.arguments, name, 'w')}[c] = n{k};"

    def _update(self, k: int, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        yield f"            if (in{k} && {inside(self.problem, update, 1)}) {{"
        targets = list(self.plan.targets)
        names = [f"n{targets.index(target)}" for target in update.targets]
        for line in assigned(self.arguments, update.assignments, names, self._read):
            yield f"              {line}"
        yield "            }"

    def _read(self, read: Read) -> str:
        if read.field in self.rings.profiles:
            return self.rings.profile(read)
        if read.field not in self.plan.before and read.field not in self.rings.coefficients:
            return in_memory(self.problem, read, self.rings.shape.steps)
        row, offset = pointer(self.arguments, read.field, tag_of(read.offset[0])), read.offset[1]
        if offset == 0:
            return f"{row}[c]"
        if self.problem.grid.boundary[1] == "reflecting":
            return f"{row}[{mirrored(self.problem, f'x + {offset}', 1)} - x0]"
        return f"{row}[c + {offset}]"


def pointer(arguments: Arguments, field: str, tag: str) -> str:
    """The name of the pointer to a field's row; tag: `w` for the row that is written, else see `tag_of`."""
    return f"p{arguments.fields.index(field)}{tag}"


def tag_of(offset: int) -> str:
    """The part of a pointer's name that says how many rows ahead it lies."""
    return f"m{-offset}" if offset < 0 else f"p{offset}"
