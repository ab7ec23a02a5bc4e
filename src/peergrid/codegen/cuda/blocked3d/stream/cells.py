"""What a node of a 3D pass makes of the values at hand: the cells of a plane, with and without tests.

Cells outside an update's box keep their value; beyond a reflecting edge a read at distance 1 means the cell itself.
Where all cells of a warp lie inside the boxes of a node's updates, which a warp knows before the loop (`calm`), and so
does the plane, no cell has to be told apart (see `nodes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Node, Write
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.stream.turn import Turn3D
from peergrid.codegen.cuda.blocked3d.walls import Sides, sides
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import Result, cell_text, plus
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read


def calm_name(problem: Problem, stage: int, target: str) -> str:
    """The name of whether all cells of a warp lie inside an update's box, along rows and columns."""
    return f"calm{stage}_{Arguments(problem).fields.index(target)}"


def calm(problem: Problem, shape: Shape3D) -> Iterator[str]:
    """What a warp knows before the loop."""
    for (stage, target), found in sides(problem, shape.steps).items():
        rows = [found.test(1, plus("y", j)) for j in (0, shape.rows - 1)]
        columns = [found.test(2, plus("x", i)) for i in (0, shape.columns - 1)]
        tests = " && ".join(dict.fromkeys(filter(None, (*rows, *columns))))
        if tests:
            yield f"  const bool {calm_name(problem, stage, target)} = __all_sync(0xffffffffu, {tests});"


@dataclass(frozen=True)
class Cells3D:
    """The text of the cells that a node makes in one turn of the loop."""

    turn: Turn3D
    node: Node

    @property
    def problem(self) -> Problem:
        return self.turn.planes.problem

    @property
    def shape(self) -> Shape3D:
        return self.turn.planes.shape

    def tests(self) -> list[str]:
        """What tells that no cell of a warp keeps its value."""
        tests: dict[str, None] = {}
        for write in self.node.writes:
            found = self._sides(write)
            if found.test(0, ""):
                tests[found.test(0, self.turn.made(self.node))] = None
            if found.test(1, "") or found.test(2, "x"):
                tests[calm_name(self.problem, self.node.stage, write.new.field)] = None
        return list(tests)

    def together(self) -> Iterator[str]:
        """All cells, where none keeps its value."""
        for write in self.node.writes:
            for j in range(self.shape.rows):
                yield from self._row(write, j, apart=False)

    def apart(self) -> Iterator[str]:
        """All cells, told apart."""
        for write in self.node.writes:
            for j in range(self.shape.rows):
                yield from self._row_apart(write, j)

    def _sides(self, write: Write) -> Sides:
        return sides(self.problem, self.shape.steps)[self.node.stage, write.new.field]

    def _row_apart(self, write: Write, j: int) -> Iterator[str]:
        """One row; where it lies outside the update's box it keeps its values, which is told for all lanes at once."""
        found = self._sides(write)
        tests = list(filter(None, (found.test(0, self.turn.made(self.node)), found.test(1, plus("y", j)))))
        yield f"    if ({' && '.join(tests) or 'true'}) {{"
        yield from self._row(write, j, apart=True)
        yield "    } else {"
        new, old = self.turn.name(write.new, 0, j), self._old(write, j)
        for i in range(self.shape.columns):
            yield f"      {new}[{i}] = {old}[{i}];"
        yield "    }"

    def _row(self, write: Write, j: int, *, apart: bool) -> Iterator[str]:
        """The cells of a row; apart: those in columns outside the update's box keep their values."""
        for i in range(self.shape.columns):
            found = self._result(write, j, i)
            yield from (f"      {line}" for line in found.declarations)
            text = found.value
            test = self._sides(write).test(2, plus("x", i), i, self.shape.columns) if apart else ""
            if test:
                yield f"      const R c{write.new.number}_{j}_{i} = {text};"
                text = f"{test} ? c{write.new.number}_{j}_{i} : {self._old(write, j)}[{i}]"
            yield f"      {self.turn.name(write.new, 0, j)}[{i}] = {text};"

    def _old(self, write: Write, j: int) -> str:
        """The row before the node."""
        return self.turn.name(write.old, self.node.lag - write.old.lag, j)

    def _result(self, write: Write, j: int, i: int) -> Result:
        """The new value of a cell."""
        given = Arguments(self.problem)
        (found,) = cell_text(
            [write.assignment.value],
            lambda read: self._value(read, j, i),
            given.param,
            lambda signal: given.now(signal, f"step0 + {self.node.step}"),
            self.problem.grid.dtype,
            prefix=f"t{write.new.number}_{j}_{i}_",
        )
        return found

    def _value(self, read: Read, j: int, i: int, axis: int = 0) -> str:
        """What a read finds; beyond reflecting edges, along the axes from `axis` on, the mirrored cell."""
        grid = self.problem.grid
        while axis < 3 and not (read.offset[axis] and grid.boundary[axis] == "reflecting"):
            axis += 1
        if axis == 3:
            return self._found(read, j, i)
        there = self._value(read, j, i, axis + 1)
        edge = 0 if read.offset[axis] < 0 else grid.shape[axis] - 1
        if axis == 2 and (edge - i) % self.shape.columns:
            return there
        here = (self.turn.made(self.node), plus("y", j), plus("x", i))[axis]
        offset = tuple(0 if k == axis else o for k, o in enumerate(read.offset))
        mirrored = self._value(Read(read.field, offset), j, i, axis + 1)
        return f"({here} == {edge} ? {mirrored} : {there})"

    def _found(self, read: Read, j: int, i: int) -> str:
        if not self.problem.fields[read.field].full:
            return self._profile(read, j, i)
        version, age = self.node.row(read)
        return self.turn.value(version, age, j + read.offset[1], i + read.offset[2])

    def _profile(self, read: Read, j: int, i: int) -> str:
        axis, number = self.problem.fields[read.field].axes[0], Arguments(self.problem).fields.index(read.field)
        here = (("r", self.turn.number - self.node.lag), ("y", j), ("x", i))[axis]
        return f"a.fields[{number}].slot[0][{plus(here[0], here[1] + read.offset[axis])}]"
