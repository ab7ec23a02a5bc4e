"""The text of a warp that streams down the rows of a zone's tile: pointers, rings, the loop over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Version
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D


@dataclass(frozen=True)
class Rows2D(StreamPlan2D):
    """The parts of a zone's function that `layer` puts together."""

    def _sources(self) -> Iterator[str]:
        for ring in self.rings.values() if self.runs else ():
            yield f"  const R* in{self._number(ring.version)} = {self._source(ring.version)}"
            yield f"      + (first * a.fields[{self._number(ring.version)}].pitch[0] + x);"

    def _targets(self) -> Iterator[str]:
        for version in self.levels.finals if self.runs else ():
            number = self._number(version)
            yield (
                f"  R* out{number} = a.fields[{number}].slot[target] + "
                f"((first - {version.lag}) * a.fields[{number}].pitch[0] + x);"
            )

    def _number(self, version: Version) -> int:
        return self.arguments.fields.index(version.field)

    def _source(self, version: Version) -> str:
        slot = "source" if version.field in self.problem.state else "0"
        return f"a.fields[{self._number(version)}].slot[{slot}]"

    def _from(self, version: Version, row: str) -> str:
        """Where a row of an input lies."""
        number = self._number(version)
        far = f"{self._source(version)} + (({row}) * a.fields[{number}].pitch[0] + x)"
        return f"in{number}" if self.runs else far

    def _to(self, version: Version, row: str) -> str:
        """Where a row of a result lies; row: the newest."""
        number = self._number(version)
        far = f"a.fields[{number}].slot[target] + (({row} - {version.lag}) * a.fields[{number}].pitch[0] + x)"
        return f"out{number}" if self.runs else far

    def _next(self, pointer: str, number: int) -> Iterator[str]:
        """A pointer moves on to the next row."""
        if self.runs:
            yield f"{pointer}{number} += a.fields[{number}].pitch[0];"

    def _declarations(self) -> Iterator[str]:
        for version in self.levels.versions:
            names = ", ".join(f"v{version.number}_{k}[{self.shape.columns}] = {{}}" for k in self._slots(version))
            yield f"  R {names};"
        for rows in sorted({ring.rows for ring in self.rings.values()}):
            yield f"  unsigned in_{rows} = 0, at_{rows} = 0;"
        yield from self._sums_declared()

    def _sums_declared(self) -> Iterator[str]:
        raise NotImplementedError

    def _slots(self, version: Version) -> range:
        return range(version.depth)

    def _rows(self) -> Iterator[str]:
        """All rows of a tile."""
        yield f"  for (int r = first; r < y1 + {self.levels.lag}; ++r) {{"
        yield from self._turn()
        yield "  }"

    def _fill(self) -> Iterator[str]:
        for ahead in range(self.shape.ahead):
            yield from self._fetch(f"first + {ahead} < last")

    def _fetch(self, condition: str) -> Iterator[str]:
        raise NotImplementedError

    def _turn(self) -> Iterator[str]:
        raise NotImplementedError

    def _advance(self, name: str) -> Iterator[str]:
        for rows in sorted({ring.rows for ring in self.rings.values()}):
            last, place = (rows - 1) * self.row_bytes, f"{name}_{rows}"
            yield f"    {place} = {place} == {last} ? 0 : {place} + {self.row_bytes};"
