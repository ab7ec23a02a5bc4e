"""How planes come from memory in a 3D pass: asynchronous copies of 16 bytes, planes ahead of their use.

Copies through the first-level cache take room there while they are on the way: they are the faster ones where it is
left as it comes, and the slower where nearly all of it is shared memory, for other kernels' tiles to find room beside.
Where the columns of a lane are fewer than 16 bytes, some lanes of a warp load its row: for the others' columns, beyond
the tile, there is no need. Copies are clipped to the cells that are needed and exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked3d.stream.planes import Planes3D
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import plus
from peergrid.stencil import footprint

TILE = (("z0", "z1"), ("y0", "y1"), ("c0", "c1"))
"""The cells of a tile along each axis."""


@dataclass(frozen=True)
class Loads3D:
    """The text that loads the planes of one problem and shape; near: through the first-level cache."""

    planes: Planes3D
    near: bool = True

    @property
    def chunk(self) -> int:
        """How many values of a row a lane loads."""
        return self.planes.shape.align(self.planes.problem.itemsize)

    @property
    def apart(self) -> bool:
        """Whether lanes load other cells than their own."""
        return self.chunk > self.planes.shape.columns

    @property
    def column(self) -> str:
        """The first column that a lane loads."""
        return "xf" if self.apart else "x"

    def start(self, column: str) -> Iterator[str]:
        """The first column that a lane loads, if not that of its own cells; column: the block's first."""
        if self.apart:
            yield f"  const int xf = {column} + lane * {self.chunk};"

    def into(self) -> Iterator[str]:
        """Where a lane puts what it loads, if not where its own cells are."""
        if self.apart:
            beside = (self.chunk - self.planes.pack) * self.planes.problem.itemsize
            yield f"  unsigned char* const loaded = mine + lane * {beside};"

    def sources(self) -> Iterator[str]:
        """Where each field is loaded from, and which rows a lane loads."""
        for number, name in enumerate(self._classes()):
            for j in range(self.planes.shape.rows):
                tests = [self._needed(name, 1, plus("y", j), 1), self._needed(name, 2, self.column, self.chunk)]
                yield f"  const bool on{number}_{j} = {' && '.join(tests)};"
        for ring in self.planes.loaded:
            name = ring.version.field
            field = f"a.fields[{self._number(name)}]"
            slot = "source" if name in self.planes.problem.state else "0"
            yield f"  const R* in{self._number(name)} = {field}.slot[{slot}]"
            yield f"      + (first * {field}.pitch[0] + y * {field}.pitch[1] + {self.column});"

    def fetch(self, plane: str, place: int) -> Iterator[str]:
        """The next plane of every input, where there is one, into its ring; place: the plane's, from the first one."""
        planes = self.planes
        values = self.chunk if self.apart else planes.pack
        kind = f"{values * planes.problem.itemsize}{', true' if self.near else ''}"
        size, to = values * planes.problem.itemsize, "loaded" if self.apart else "mine"
        for ring in planes.loaded:
            name = ring.version.field
            number, at = self._number(name), f"in_{ring.count}"
            if planes.fixed(ring.count):
                at = f"{place % ring.count * planes.plane_bytes}"
            yield f"    if ({self._needed(name, 0, plane, 1)}) {{"
            for j in range(planes.shape.rows):
                row = f" + {j} * a.fields[{number}].pitch[1]" if j else ""
                yield f"      if (on{self._class(name)}_{j}) {{"
                for part in range(self.chunk // values):
                    start = planes.offset(ring, j, part, size)
                    yield f"        pg_fetch<{kind}>({to} + {at} + {start}, in{number}{row} + {part * values});"
                yield "      }"
            yield "    }"
            yield f"    in{number} += a.fields[{number}].pitch[0];"
        yield "    pg_fetched();"

    def _number(self, name: str) -> int:
        return Arguments(self.planes.problem).fields.index(name)

    def _classes(self) -> tuple[str, ...]:
        """Fields that stand for all with the same box and reach: for these the same cells are loaded."""
        found: dict[object, str] = {}
        for ring in self.planes.loaded:
            found.setdefault(self._cells(ring.version.field), ring.version.field)
        return tuple(found.values())

    def _class(self, name: str) -> int:
        return [self._cells(other) for other in self._classes()].index(self._cells(name))

    def _cells(self, name: str) -> tuple[object, ...]:
        problem = self.planes.problem
        return footprint(problem, self.planes.shape.steps).inputs[name], problem.fields[name].box

    def _needed(self, name: str, axis: int, text: str, count: int) -> str:
        """Whether any of `count` cells from one on is needed, along an axis."""
        problem = self.planes.problem
        growth, box = footprint(problem, self.planes.shape.steps).inputs[name], problem.fields[name].box
        low, high = f"{TILE[axis][0]} - {growth.below[axis]}", f"{TILE[axis][1]} + {growth.above[axis]}"
        if not problem.grid.periodic[axis]:
            low, high = f"max({low}, {box.lo[axis]})", f"min({high}, {box.hi[axis]})"
        return f"{plus(text, count - 1)} >= {low} && {text} < {high}"
