"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), held in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.edge`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Version
from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.turn import Turn
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference
from peergrid.codegen.norm import NORM_ROWS

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}{bound})
{entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = {warp}, tile = blockIdx.x * {warps} + warp;
  if (tile < a.count)
    {entry}_tile(a, a.regions[tile], a.source, a.target, now(a), shared + warp * {warp_bytes}{norms});
}}
"""


def warp_of(warps: int, *, alike: bool = False) -> str:
    """The text of a thread's warp in its block; alike: such that a compiler sees that it is the same for all lanes.

    Then lanes branch by rows together: tiles of zones have a sixth less text and need fewer registers. Plain tiles have
    half the text, but hardly gain (decision 034).
    """
    if warps == 1:
        return "0"
    return "__shfl_sync(0xffffffffu, threadIdx.x >> 5, 0)" if alike else "threadIdx.x >> 5"


@dataclass(frozen=True)
class Stream2D(StreamPlan2D):
    """The text of the interior's kernel for one problem and shape."""

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(self.arguments, self.norm), self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose warps take one tile each."""
        return KERNEL.format(
            entry=self.entry,
            threads=32 * self.shape.warps,
            bound=f", {self.shape.blocks}" if self.shape.blocks else "",
            warp=warp_of(self.shape.warps),
            warps=self.shape.warps,
            warp_bytes=self.warp_bytes,
            more=norm_parameter(self.norm),
            norms=norm_argument(self.norm),
        )

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one warp."""
        above, below = row_reach(self.problem, self.shape.steps)
        more = norm_reference(self.norm)
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            f"    const int source, const int target, const long long step0, unsigned char* const shared{more}) {{",
            "  const int lane = threadIdx.x & 31;",
            "  const int y0 = tile.lo[0], y1 = tile.hi[0], c0 = tile.lo[1], c1 = tile.hi[1];",
            f"  const int x = c0 - {margin(self.problem, self.shape)} + lane * {self.shape.columns};",
            f"  const int first = y0 - {above}, last = y1 + {below};",
            f"  unsigned char* const ring = shared + lane * {self.pack * self.problem.itemsize};",
            *self._sources(),
            *self._targets(),
            *self._declarations(),
            *self._fill(),
            *(self._blocks() if self.norm else self._rows()),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _sources(self) -> Iterator[str]:
        for ring in self.rings.values() if self.runs else ():
            yield f"  const R* in{self._number(ring.version)} = {self._source(ring.version)}"
            yield f"      + (first * a.fields[{self._number(ring.version)}].pitch[0] + x);"

    def _targets(self) -> Iterator[str]:
        for version in self.levels.finals if self.runs else ():
            number = self._number(version)
            yield (
                f"  R* out{number} = a.fields[{number}].slot[target] + "
                f"((first - {version.lag + self.early}) * a.fields[{number}].pitch[0] + x);"
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
            yield f"  unsigned in_{rows} = 0, at_{rows} = {-self.early % rows * self.row_bytes};"
        yield from self._sums_declared()

    def _sums_declared(self) -> Iterator[str]:
        for step in range(self.shape.steps) if self.norm else ():
            yield f"  R q{step}[{self.shape.columns // 4}] = {{}};"

    def _slots(self, version: Version) -> range:
        return range(self.period) if self.rotates else range(version.depth)

    def _rows(self) -> Iterator[str]:
        """All rows of a tile, a turn of the registers after another."""
        yield f"  for (int r = first; r < y1 + {self.levels.lag}; r += {self.period}) {{"
        yield from self._turns()
        yield "  }"

    def _blocks(self) -> Iterator[str]:
        """The same with norms, a block of cells after another: which sums end with a row is known in the text.

        The turns in which sums end stand there one by one, the others are one loop, so that the text stays short.
        """
        units, some = NORM_ROWS // self.period, [k for k, ending in enumerate(self._endings(self.early)) if any(ending)]
        first, last = some[0], some[-1]
        yield f"  const int end = y1 + {self.levels.lag};"
        yield f"  int r = first - {self.early};"
        yield f"  for (int left = {first};; left = {first + units - 1 - last}) {{"
        if last - first < units - 1:
            yield f"    for (; left && r < end; --left, r += {self.period}) {{"
            yield from self._turns()
            yield "    }"
            yield "    if (r >= end) break;"
        for ending in self._endings(self.early)[first : last + 1]:
            yield from self._turns(ending)
            yield f"    if ((r += {self.period}) >= end) break;"
        yield "  }"

    def _endings(self, early: int) -> list[list[list[int]]]:
        """For each turn of a block and each row of it, the steps whose sums end there."""
        above, _ = row_reach(self.problem, self.shape.steps)
        ends = [(early + above + version.lag - 1) % NORM_ROWS for version in self.levels.ends(self.norm or "")]
        steps = [[k for k, end in enumerate(ends) if end == row] for row in range(NORM_ROWS)]
        return [steps[turn : turn + self.period] for turn in range(0, NORM_ROWS, self.period)]

    @cached_property
    def early(self) -> int:
        """How many rows before its first a tile begins, with what lies in memory, so that sums end in few turns."""
        if not self.norm:
            return 0
        choices = range(min(self.period, self.shape.ahead + 1))
        return min(choices, key=lambda early: sum(any(ending) for ending in self._endings(early)))

    def _turns(self, ending: Sequence[Sequence[int]] = ()) -> Iterator[str]:
        for turn in range(self.period):
            yield from self._turn(turn, ending[turn] if ending else ())

    def _fill(self) -> Iterator[str]:
        for _ in range(self.early):
            yield "    pg_fetched();"
        for ahead in range(self.shape.ahead - self.early):
            yield from self._fetch(f"first + {ahead} < last")

    def _fetch(self, condition: str) -> Iterator[str]:
        """The next row of every input, where there is one, into its ring."""
        size, row = self.pack * self.problem.itemsize, condition.removesuffix(" < last")
        yield f"    if ({condition}) {{"
        for ring in self.rings.values():
            start = self._from(ring.version, row)
            for part in range(self.shape.columns // self.pack):
                place = ring.start + part * 32 * size
                yield f"      pg_fetch<{size}>(ring + in_{ring.rows} + {place}, {start} + {part * self.pack});"
            yield from (f"      {line}" for line in self._next("in", self._number(ring.version)))
        yield "    }"
        yield "    pg_fetched();"
        yield from self._advance("in")

    def _advance(self, name: str) -> Iterator[str]:
        for rows in sorted({ring.rows for ring in self.rings.values()}):
            last, place = (rows - 1) * self.row_bytes, f"{name}_{rows}"
            yield f"    {place} = {place} == {last} ? 0 : {place} + {self.row_bytes};"

    def _turn(self, turn: int, ending: Sequence[int]) -> Iterator[str]:
        """One row: load ahead, wait for the newest, every node, the sums that end, the finished rows."""
        row = f"r + {turn}" if turn else "r"
        yield "    {"
        yield from self._fetch(f"{row} + {self.shape.ahead} < last")
        yield f"    pg_await<{self.shape.ahead}>();"
        body = Turn(self, turn)
        for place, node in enumerate(self.levels.nodes):
            yield from body.node(node)
            yield from body.difference(node)
            yield from body.move_on(place)
        for step in ending:
            yield from self._sums(row, step)
        yield from self._store(row, body)
        yield from self._advance("at")
        yield "    }"

    def _sums(self, row: str, step: int) -> Iterator[str]:
        """Partial sums of a step to memory, of the blocks of cells whose last row this was."""
        columns, lag = self.shape.columns, self.levels.ends(self.norm or "")[step].lag
        yield f"    {{ const int y = {row} - {lag};"
        for part in range(columns // 8):
            yield f"      const R s{part} = q{step}[{2 * part}] + q{step}[{2 * part + 1}];"
        if columns == 4:
            yield f"      const R s0 = q{step}[0] + __shfl_xor_sync(0xffffffffu, q{step}[0], 1);"
        test = "y >= y0 && y < y1" + (" && !(lane & 1)" if columns == 4 else "")
        for part in range(max(1, columns // 8)):
            column = f"x + {8 * part}"
            block = f"{step} * norms.plane + (y / {NORM_ROWS}) * norms.pitch + ({column}) / 8"
            yield f"      if ({test} && {column} >= c0 && {column} < c1) norms.partial[{block}] = s{part};"
        yield f"      for (int k = 0; k < {columns // 4}; ++k) q{step}[k] = R(0); }}"

    def _store(self, row: str, body: Turn) -> Iterator[str]:
        for version in self.levels.finals:
            start = self._to(version, row)
            yield from body.load(version, 0)
            yield f"    if ({row} >= y0 + {version.lag} && {row} < y1 + {version.lag}) {{"
            for part in range(self.shape.columns // self.pack):
                values = ", ".join(f"{body.name(version, 0)}[{part * self.pack + k}]" for k in range(self.pack))
                column = f"x + {part * self.pack}" if part else "x"
                yield (
                    f"      if ({column} >= c0 && {column} < c1) "
                    f"*reinterpret_cast<Pack<{self.pack}>*>({start} + {part * self.pack}) = {{{{{values}}}}};"
                )
            yield "    }"
            yield from (f"    {line}" for line in self._next("out", self._number(version)))
