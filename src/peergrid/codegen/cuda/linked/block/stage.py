"""The text of one stage in a tile of a block: every thread advances its cells, a barrier ends the stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.blocked2d.places import inside, mirrored, wrapped
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.cells import assigned
from peergrid.codegen.cuda.linked.block.cells import BlockCells2D, near
from peergrid.codegen.cuda.linked.block.results import ended, final, record
from peergrid.stencil import Growth, Problem, Stage, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update


@dataclass(frozen=True)
class BlockStage2D:
    """The text of one stage of all steps."""

    cells: BlockCells2D
    number: int

    @property
    def problem(self) -> Problem:
        return self.cells.problem

    @property
    def stage(self) -> Stage:
        return self.problem.stages[self.number]

    @property
    def arguments(self) -> Arguments:
        return self.cells.arguments

    def lines(self) -> Iterator[str]:
        growth = reduce(Growth.__or__, footprint(self.problem, 1).targets[0][self.number].values())
        mixed = self.cells.mixed(self.stage)
        yield f"    {{  // stage {self.number}"
        yield f"      {self.cells.bounds('left', growth)}"
        for k, update in enumerate(self.stage.updates):
            rows, columns = (self.arguments.bounds(update, axis) for axis in (0, 1))
            reached = "true" if any(self.problem.grid.periodic) else near(rows, columns)
            yield f"      const bool near{k} = {reached};"
        yield from self.cells.loop(self._advance(mixed))
        yield "      __syncthreads();"
        for name in mixed:
            now, then = self.cells.array(name), self.cells.other(name)
            yield f"      {{ const int q = {now}; {now} = {then};"
            yield f"        {then} = q; }}"
        yield from record(self.cells, self.number)
        yield "    }"

    def _advance(self, mixed: tuple[str, ...]) -> Iterator[str]:
        """One cell in one stage."""
        for axis in (0, 1):
            if declared := wrapped(self.problem, axis):
                yield f"      {declared}"
        for k, name in enumerate(self.stage.targets):
            test = self.cells.confined.test(name)
            yield f"      R n{k} = R(0);" if test else f"      R n{k} = s[{self.cells.array(name)} + at];"
            if test:
                yield f"      {test}n{k} = s[{self.cells.array(name)} + at];"
        for k, update in enumerate(self.stage.updates):
            yield from self._update(k, update)
        for k, name in enumerate(self.stage.targets):
            array = self.cells.other(name) if name in mixed else self.cells.array(name)
            yield f"      {self.cells.confined.test(name)}s[{array} + at] = n{k};"
        for k, name in enumerate(self.stage.targets):
            if name in ended(self.problem, self.number):
                yield from final(self.cells, name, f"n{k}")

    def _update(self, k: int, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        tests = " && ".join(inside(self.problem, update, axis) for axis in (0, 1))
        yield f"      if (near{k} && {tests}) {{"
        targets = list(self.stage.targets)
        names = [f"n{targets.index(target)}" for target in update.targets]
        for line in assigned(self.arguments, update.assignments, names, self._read):
            yield f"        {line}"
        yield "      }"

    def _read(self, read: Read) -> str:
        for profile in self.cells.profiles:
            if profile.name == read.field:
                here = ("y - yb", "x - xb")[profile.axis]
                return f"s[{profile.start} + {here} + {profile.pad + read.offset[profile.axis]}]"
        if "reflecting" in self.problem.grid.boundary and any(read.offset):
            y, x = (self._mirrored(read, axis) for axis in (0, 1))
            return f"s[{self.cells.array(read.field)} + ({y} - yb) * {self.cells.shape.width} + ({x} - xb)]"
        return f"s[{self.cells.array(read.field)} + at + {read.offset[0] * self.cells.shape.width + read.offset[1]}]"

    def _mirrored(self, read: Read, axis: int) -> str:
        text = f"{'yx'[axis]} + {read.offset[axis]}"
        found = mirrored(self.problem, text, axis)
        return found if found != text else f"({text})"
