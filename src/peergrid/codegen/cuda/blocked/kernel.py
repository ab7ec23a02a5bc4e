"""A kernel of tiles as a value, and its translation unit: tables of the problem, templates, each update once, plans.

Tiles are made by warps or by blocks. With the tables of an exchange a kernel deals with neighbours itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from peergrid.codegen.cuda.blocked.updates import Applied, Updates
from peergrid.codegen.cuda.common.arguments import Arguments, prelude
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.skeletons import include
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

HELPERS = "async_copy.cuh", "helpers.cuh"
"""The files that kernels of several steps start with."""

KERNEL = """\
extern "C" __global__ void {bounds}
{entry}({parameters}) {{
  extern __shared__ __align__(128) unsigned char shared[];
{call}
}}
"""
CALLS = {
    "block": "  {exchange}block_tile<{tiles}>(a, {more}shared{norms});",
    "warp": """\
  const int warp = {warp};
  {exchange}warp_tile<{tiles}>(a, {more}blockIdx.x * {count} + warp, shared + warp * {tiles}::WARP_BYTES{norms});""",
}
"""The statements by which a kernel's blocks, or their warps, take one tile each."""


class Plan(Protocol):
    """The plan of a template: the updates that it applies, and its text, given their functions."""

    @property
    def applied(self) -> tuple[Applied, ...]: ...
    def source(self, updates: Updates) -> str: ...


@dataclass(frozen=True)
class TileKernel:
    """The kernel of all tiles of one kind, in passes of so many steps.

    norm: a field the norm of whose change is summed up; templates: files of `skeletons`; plans: of these; tiles: the
    struct whose `advance` makes a tile; by: what makes one; bounds: the words of the text for threads and registers;
    threads, shared_bytes: of a block; tiles_per_block: as many as warps, where warps make them; alike: see `warp_of`;
    whole: see `Program`.
    """

    steps: int
    norm: str | None
    entry: str
    templates: tuple[str, ...]
    plans: tuple[Plan, ...]
    tiles: str
    by: Literal["warp", "block"]
    bounds: str
    threads: int
    shared_bytes: int
    tiles_per_block: int = 1
    alike: bool = False
    whole: bool = True

    def text(self, entry: str, *, exchange: bool) -> str:
        """The text of the kernel itself under a name; exchange: it deals with neighbours."""
        more = *(("Exchange exchange",) if exchange else ()), *(("Norms norms",) if self.norm else ())
        call = CALLS[self.by].format(
            exchange="exchange_" if exchange else "",
            tiles=self.tiles,
            more="exchange, " if exchange else "",
            warp=warp_of(self.tiles_per_block, alike=self.alike and not exchange),
            count=self.tiles_per_block,
            norms=", norms" if self.norm else "",
        )
        return KERNEL.format(
            bounds=self.bounds,
            entry=entry,
            parameters=listed(f"const __grid_constant__ {parameter}" for parameter in ("Arguments a", *more)),
            call=call,
        )


@remembered()
def program(problem: Problem, kernel: TileKernel, tables: str = "") -> Program:
    """A kernel as what is launched; tables: those of an exchange, which it then deals with itself."""
    templates = (*kernel.templates, *(("peer2d.cuh",) if tables else ()))
    entry = f"{kernel.entry}_peer" if tables else kernel.entry
    text = kernel.text(entry, exchange=bool(tables))
    source = unit(problem, kernel.steps, kernel.norm, templates, kernel.plans, text, tables)
    return Program(source, entry, kernel.threads, kernel.shared_bytes, kernel.tiles_per_block, kernel.whole)


def unit(
    problem: Problem,
    steps: int,
    norm: str | None,
    templates: Sequence[str],
    plans: Sequence[Plan],
    kernel: str,
    tables: str,
) -> str:
    """The text for passes of so many steps; templates: files of `skeletons`; kernel: what is to follow the plans;
    tables: further ones that the templates ask for.
    """
    updates = Updates(problem, tuple(applied for plan in plans for applied in plan.applied))
    head = (
        prelude(Arguments(problem), *HELPERS, *(("norms.cuh",) if norm else ())),
        updates.tables(steps),
        tables,
        include("tiles.cuh", *templates),
        updates.source,
    )
    return "\n".join((*filter(None, head), *(plan.source(updates) for plan in plans), kernel))


def warp_of(warps: int, *, alike: bool) -> str:
    """The text of a thread's warp in its block; alike: such that a compiler sees that it is the same for all lanes.

    Then lanes branch by rows together: tiles of strips have a sixth less text and need fewer registers. Interior tiles
    have half the text, but hardly gain (decision 034).
    """
    if warps == 1:
        return "0"
    return "__shfl_sync(0xffffffffu, threadIdx.x >> 5, 0)" if alike else "threadIdx.x >> 5"
