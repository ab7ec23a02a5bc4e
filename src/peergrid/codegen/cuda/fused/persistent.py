"""All passes of a run in one cooperative kernel on each device, by `skeletons/persistent2d.cuh`.

Units are boundary tiles for a whole block (`block`) and interior tiles for each of its warps (`blocked2d.stream`).
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.kernel import Plan, unit
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.tiles import tiles
from peergrid.codegen.cuda.common.arguments import REGION
from peergrid.codegen.cuda.common.program import Program, regions_of, serving
from peergrid.codegen.cuda.fused.block import Block2D
from peergrid.codegen.cuda.fused.exchange import ExchangeTables
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.codegen.regions import FAR
from peergrid.grid import Box

PASSES = layout_of("persistent2d.cuh", "Passes")
"""The tiles of a device (tables of REGION), how many passes; the address of the counter of its blocks' barrier, and how
often they have arrived there before."""

ALONE = 29, 40  # share of the shared memory that a block can have: so that it has a multiprocessor to itself

Tables = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

HEAD = 32  # bytes of shared memory for a word by which the block stops; its first tiles follow

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}{bound})
persistent2d(const __grid_constant__ Arguments a, const __grid_constant__ Exchange exchange,
             const __grid_constant__ Passes passes) {{
  extern __shared__ __align__(128) unsigned char shared[];
  all_passes<{steps}, {warps}, {head}, {room}, {interior}, Block>(a, exchange, passes, shared);
}}
"""


@dataclass(frozen=True)
class PersistentKernel:
    """`made` says how interior tiles are computed; rows: most of a boundary tile; warps: of a block.

    interior: whether there are interior tiles; without them each block has a multiprocessor to itself; room: bytes of
    shared memory that a block can have; recorded: whether tiles note what they do.
    """

    made: PassKernel
    interior: bool = True
    rows: int = 16
    warps: int = 16
    gpu: GpuModel = H200
    recorded: bool = False

    @cached_property
    def links(self) -> ExchangeTables:
        return ExchangeTables(self.made.problem, self.made.shape.steps, self.recorded)

    @cached_property
    def block(self) -> Block2D:
        """The boundary tiles."""
        return Block2D(self.made.problem, self.made.steps, self.made.boundary_width, self.rows, self.warps)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def _head(self) -> int:
        """Bytes of shared memory before the tiles' part."""
        return -(-(HEAD + self.warps * REGION.itemsize) // 128) * 128

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, known without the text."""
        alone = ALONE[0] * self.gpu.block_shared // ALONE[1] - self._head
        beside = self.warps * self.made.stream.warp_bytes if self.interior else alone
        return self._head + max(self.block.shared_bytes, beside)

    @cached_property
    def program(self) -> Program:
        stream, steps = self.made.stream, self.made.shape.steps
        inside = stream.kernel if self.interior else None
        kernel = KERNEL.format(
            threads=self.threads,
            bound="" if self.interior else ", 1",  # latency counts there, not how many blocks fit
            steps=steps,
            warps=self.warps,
            head=HEAD,
            room=self._head,
            interior=inside.tiles if inside else "NoTiles",
        )
        plans: tuple[Plan, ...] = (*inside.plans, self.block) if inside else (self.block,)
        templates = (*(inside.templates if inside else ()), "exchange2d.cuh", "block2d.cuh", "persistent2d.cuh")
        source = unit(self.made.problem, steps, None, templates, plans, kernel, self.links.source)
        return Program(source, "persistent2d", self.threads, self.shared_bytes, self.warps)

    def tables(self, box: Box, blocks: int, recorded: Sequence[int] = ()) -> Tables:
        """The interior tiles, the boundary tiles and the receivers of a device's box; blocks: that run at once."""
        here = self.made.problem.receivers_in(box, recorded)
        found = self.tiles(box, blocks, here)
        boundary, served = serving(self.made.problem, found.boundary, here)
        interior, boundary = (self.links.boundary_first(box, table) for table in (regions_of(found.interior), boundary))
        return interior, boundary, served

    def tiles(self, box: Box, blocks: int, recorded: tuple[int, ...] = ()) -> Tiles:
        """The tiles of a device's box: interior ones are as short as blocks that boundary tiles leave have room for.

        recorded: receivers in the box.
        """
        cut = replace(self.made.cut, boundary_columns=self.block.columns, boundary_rows=self.rows)
        cut = cut if self.interior else replace(cut, columns=FAR)
        found = tiles(self.made.problem, self.made.shape.steps, box, cut, blocks * self.warps, recorded)
        if not found.interior:
            return found
        left = max(blocks - len(found.boundary), -(-blocks // 4))
        return tiles(self.made.problem, self.made.shape.steps, box, cut, left * self.warps, recorded)

    def units(self, interior: Sized, boundary: Sized) -> int:
        """The number of blocks that have work, at most."""
        return len(boundary) + -(-len(interior) // self.warps)
