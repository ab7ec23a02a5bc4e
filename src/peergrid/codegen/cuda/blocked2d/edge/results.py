"""The text of what becomes of the rows that are final after a stage of an edge tile of a 2D pass.

They go to memory after the last step, and after every step into the sums of its norm and to the receivers. A row is
found at the pointer of its field with the tag `w` (see `stage`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked2d.edge.rings import EdgeRings2D
from peergrid.codegen.cuda.blocked2d.places import written
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS
from peergrid.stencil import Problem


@dataclass(frozen=True)
class EdgeResults2D:
    """What is final after one stage of all steps."""

    rings: EdgeRings2D
    number: int

    @property
    def problem(self) -> Problem:
        return self.rings.problem

    def lines(self) -> Iterator[str]:
        plan = self.rings.plan
        done = [name for name in plan.stages[self.number].targets if plan.last_stage(name) == self.number]
        for name in done:
            yield from self._stored(name)
        if self.rings.norm in done:
            yield from self._difference(self.rings.norm)
        recorded = {receiver.field for receiver in self.problem.receivers}
        for name in done:
            if name in recorded:
                yield from self._recorded(name)

    def _field(self, name: str) -> int:
        return Arguments(self.problem).fields.index(name)

    def _stored(self, name: str) -> Iterator[str]:
        """What the last step leaves, to memory."""
        number, test = self._field(name), self.rings.confined.test(name)
        (ylo, yhi), (xlo, xhi) = (written(self.problem, name, axis) for axis in (0, 1))
        row = f"store_row(a.fields[{number}], target, p{number}w, x0, y, {ylo}, {yhi}, {xlo}, {xhi});"
        yield f"          {test}if (t == {self.rings.shape.steps - 1}) {row}"

    def _difference(self, name: str) -> Iterator[str]:
        """The squared change of the step, four neighbours by every fourth lane; blocks that end here go to memory."""
        base, place = self.rings.ring(self.rings.plan.given[name])
        now = f"p{self._field(name)}w"
        row = f"{place.format(row='y')} * {self.rings.stride} + {self.rings.pad}"
        groups = range(self.rings.shape.width // 32)
        yield f"          const R* const was = s + {base} + {row};"
        for k in groups:
            column = f"lane + {32 * k}"
            yield f"          {{ const R d = {column} < c1 - x0 ? {now}[{column}] - was[{column}] : R(0);"
            yield f"            q[{k}] = fma(d, d, q[{k}]);"
            for lane in (1, 2, 3):
                yield f"            {{ const R e = __shfl_down_sync(0xffffffffu, d, {lane});"
                yield f"              q[{k}] = fma(e, e, q[{k}]); }}"
            yield "          }"
        yield f"          if (pg_place<{NORM_ROWS}>(y) == {NORM_ROWS - 1} || y == y1 - 1) {{"
        for k in groups:
            yield f"            {{ const R sum = q[{k}] + __shfl_xor_sync(0xffffffffu, q[{k}], 4);"
            yield f"              const int x = x0 + lane + {32 * k};"
            yield "              if (y >= y0 && y < y1 && !(lane & 7) && x >= c0 && x < c1)"
            block = f"t * norms.plane + (y / {NORM_ROWS}) * norms.pitch + x / {NORM_COLUMNS}"
            yield f"                norms.partial[{block}] = sum;"
            yield f"              q[{k}] = R(0); }}"
        yield "          }"

    def _recorded(self, name: str) -> Iterator[str]:
        """A field's row to the receivers on it."""
        number = self._field(name)
        yield f"          record_row(a, tile, {number}, p{number}w, x0, y, step);"
