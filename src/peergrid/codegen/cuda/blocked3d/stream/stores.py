"""How finished planes go to memory in a 3D pass: fields with the same bounds under one test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Version
from peergrid.codegen.cuda.blocked3d.stream.loads import TILE
from peergrid.codegen.cuda.blocked3d.stream.planes import Planes3D
from peergrid.codegen.cuda.blocked3d.stream.turn import Turn3D
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import plus

PUTS = """\
// The values of a row, all of them.
template <int V, int P> __device__ __forceinline__ void pg_whole(R* to, const R (&from)[V]) {
#pragma unroll
  for (int k = 0; k < V; k += P) {
    Pack<P> q;
#pragma unroll
    for (int i = 0; i < P; ++i) q.v[i] = from[k + i];
    *reinterpret_cast<Pack<P>*>(to + k) = q;
  }
}
// Those of a row from column x on in columns lo <= x < hi.
template <int V> __device__ __forceinline__ void pg_part(R* to, const R (&from)[V], int x, int lo, int hi) {
#pragma unroll
  for (int k = 0; k < V; ++k) if (x + k >= lo && x + k < hi) to[k] = from[k];
}
"""

Bounds = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Stores3D:
    """The text that stores the planes of one problem and shape."""

    planes: Planes3D

    def targets(self) -> Iterator[str]:
        """Where each field is stored."""
        for version in self.planes.levels.finals:
            field = f"a.fields[{self._number(version)}]"
            yield f"  R* out{self._number(version)} = {field}.slot[target]"
            yield f"      + ((first - {version.lag}) * {field}.pitch[0] + y * {field}.pitch[1] + x);"

    def finished(self, turn: Turn3D) -> Iterator[str]:
        """The finished plane of every field."""
        rows = range(self.planes.shape.rows)
        for (lag, (planes, lines, columns)), versions in self._alike().items():
            for version in versions:
                yield from turn.rows(version, 0, rows)
            yield f"    if ({turn.plane} >= {planes[0]} + {lag} && {turn.plane} < {planes[1]} + {lag}) {{"
            for j in rows:
                yield f"      if ({plus('y', j)} >= {lines[0]} && {plus('y', j)} < {lines[1]}) {{"
                yield from self._row(versions, turn, j, columns)
                yield "      }"
            yield "    }"
        for version in self.planes.levels.finals:
            number = self._number(version)
            yield f"    out{number} += a.fields[{number}].pitch[0];"

    def _row(self, versions: list[Version], turn: Turn3D, j: int, columns: tuple[str, str]) -> Iterator[str]:
        """A lane's columns of a row of several fields, all or those within bounds."""
        (lo, hi), count = columns, self.planes.shape.columns
        whole, part = f"pg_whole<{count}, {self.planes.pack}>", f"pg_part<{count}>"
        places = [f"out{n} + {j} * a.fields[{n}].pitch[1]" if j else f"out{n}" for n in map(self._number, versions)]
        values = [turn.name(version, 0, j) for version in versions]
        yield f"        if (x >= {lo} && x + {count} <= {hi}) {{"
        for place, value in zip(places, values, strict=True):
            yield f"          {whole}({place}, {value});"
        yield "        } else {"
        for place, value in zip(places, values, strict=True):
            yield f"          {part}({place}, {value}, x, {lo}, {hi});"
        yield "        }"

    def _alike(self) -> dict[tuple[int, Bounds], list[Version]]:
        """The finished versions by their lag and the cells that are stored."""
        found: dict[tuple[int, Bounds], list[Version]] = {}
        for version in self.planes.levels.finals:
            bounds = tuple(self._stored(version.field, axis) for axis in range(3))
            found.setdefault((version.lag, bounds), []).append(version)
        return found

    def _stored(self, name: str, axis: int) -> tuple[str, str]:
        (lo, hi), grid, box = TILE[axis], self.planes.problem.grid, self.planes.problem.fields[name].box
        if grid.periodic[axis] or box.shape[axis] == grid.shape[axis]:
            return lo, hi
        return f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"

    def _number(self, version: Version) -> int:
        return Arguments(self.planes.problem).fields.index(version.field)
