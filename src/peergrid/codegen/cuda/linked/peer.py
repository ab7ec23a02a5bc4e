"""One pass on one device whose rim tiles deal with the neighbours themselves: await, compute, store across, tell.

Rim tiles come first in block order, so that they wait and deliver while the other tiles compute. As in
`blocked2d.pass_kernel` a pass is two launches, of plain and of edge tiles, which may run at the same time; each kernel
takes `Arguments` and `Links`, and the pass ends when both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.program import Launch, Program
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.stream.kernel import warp_of
from peergrid.codegen.cuda.blocked2d.zones.kernel import left
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter
from peergrid.codegen.cuda.linked.links import LinkText, rim_first, rim_tiles
from peergrid.grid import Box
from peergrid.stencil import Problem

INSTEAD, TURNS = 3, 2  # tiles of zones that run at once where a plain one is missing, and one after another
PLAIN = """\
extern "C" __global__ void {bounds}
{entry}_peer(const __grid_constant__ Arguments a, const __grid_constant__ Links links{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = threadIdx.x & 31, warp = {warp}, number = blockIdx.x * {warps} + warp;
  if (threadIdx.x == 0) pg_begin(links, blockIdx.x);
  if (number >= a.count) return;
  const Region tile = a.regions[number];
  int fine = 1;
  if (lane == 0) fine = pg_meet(a, links, tile, links.passed);
  __syncwarp();
  if (!__shfl_sync(0xffffffffu, fine, 0)) return;
  {entry}_tile(a, tile, a.source, a.target, now(a), shared + warp * {warp_bytes}{norms});
  if (!pg_on_rim(a, links, tile)) return;
  __syncwarp();
  pg_deliver(a, links, tile, a.target, lane, 32);
  __threadfence_system();
  __syncwarp();
  if (lane == 0) pg_tell(a, links, tile, links.passed);
}}
"""

EDGE = """\
extern "C" __global__ void __launch_bounds__({threads}, {blocks})
edge2d_peer(const __grid_constant__ Arguments a, const __grid_constant__ Links links{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const Region tile = a.regions[blockIdx.x];
  int* const word = reinterpret_cast<int*>(shared);
  if (threadIdx.x == 0) *word = pg_meet(a, links, tile, links.passed);
  __syncthreads();
  const int fine = *word;
  __syncthreads();
  if (!fine) return;
  edge2d_tile(a, tile, a.source, a.target, now(a), shared{norms});
  if (!pg_on_rim(a, links, tile)) return;
  pg_deliver(a, links, tile, a.target, threadIdx.x, {threads});
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) pg_tell(a, links, tile, links.passed);
}}
"""


@dataclass(frozen=True)
class PeerKernel:
    """A pass with the exchange in it; `made` says how its tiles are computed. Check `links.supports` first."""

    made: PassKernel

    leaves_remainder = False

    @property
    def norm(self) -> str | None:
        return self.made.norm

    @property
    def problem(self) -> Problem:
        return self.made.problem

    @property
    def steps(self) -> int:
        return self.made.steps

    @property
    def sums(self) -> Program:
        """See `PassKernel`."""
        return self.made.sums

    def around(self, registers: int) -> PeerKernel:
        """See `PassKernel`; tiles of zones begin behind the plain ones here, in the place of some that ended."""
        return PeerKernel(replace(self.made, beside=left(registers, INSTEAD)))

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """What tiles leave of a box: nothing."""
        return ()

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> PeerKernel:
        """See `PassKernel`."""
        return PeerKernel(self.made.shorter(box, edge_slots, plain_slots))

    @cached_property
    def links(self) -> LinkText:
        return LinkText(Arguments(self.made.problem), self.made.shape.steps)

    @cached_property
    def plain(self) -> Program:
        shape, stream = self.made.shape, replace(self.made.stream, pointers=False)
        kernel = PLAIN.format(
            bounds=shape.bounds,
            warp=warp_of(shape.warps),
            warps=shape.warps,
            warp_bytes=stream.warp_bytes,
            entry=stream.entry,
            **self._norms,
        )
        return replace(self.made.plain, source=self._source(stream.tile, kernel), entry="stream2d_peer")

    @cached_property
    def layer(self) -> Program | None:
        zones, program = self.made.layers, self.made.layer
        if zones is None or program is None:
            return None
        kernel = PLAIN.format(
            bounds=zones.bounds,
            warp=warp_of(zones.warps),
            warps=zones.warps,
            warp_bytes=zones.warp_bytes,
            entry=zones.entry,
            **self._norms,
        )
        return replace(program, source=self._source(zones.tile, kernel), entry=f"{zones.entry}_peer")

    @cached_property
    def edge(self) -> Program:
        edges = self.made.edges
        kernel = EDGE.format(threads=edges.threads, blocks=edges.blocks, **self._norms)
        return replace(self.made.edge, source=self._source(edges.tile, kernel), entry="edge2d_peer")

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches that advance a device's box and exchange its rim (see `PassKernel.launches`)."""
        programs = {self.made.plain: self.plain, self.made.layer: self.layer, self.made.edge: self.edge}
        return tuple(
            replace(
                launch,
                program=programs[launch.program] or launch.program,
                regions=rim_first(self.made.problem, self.made.shape.steps, box, launch.regions),
            )
            for launch in self.made.launches(box, slots - self._reserved(box, slots), recorded)
        )

    def _reserved(self, box: Box, slots: int) -> int:
        """Plain tiles that make room for a zone along axis 0, whose many tiles wait until the plain ones have begun.

        Then as good as nothing is left for them where these fill the device: fewer and longer ones cost less. Where
        rows wrap, a zone along axis 0 is what is left of a block of norms, a few rows that are soon done.
        """
        if self.problem.grid.periodic[0]:
            return 0
        inside = ((strip, box & strip.box) for strip in self.made.strips if strip.axis == 0)
        tiles = sum(-(-part.shape[1] // strip.columns) for strip, part in inside if not part.empty)
        return min(slots // 2, tiles // (INSTEAD * TURNS))

    def rim(self, box: Box, launches: Sequence[Launch]) -> tuple[int, int]:
        """What a device adds to its neighbours' counters in one pass, at the low and at the high end of its box."""
        return rim_tiles(self.made.problem, self.made.shape.steps, box, (launch.regions for launch in launches))

    @property
    def dtype(self) -> np.dtype[Any]:
        """`Links` for NumPy."""
        return self.links.dtype()

    @property
    def _norms(self) -> dict[str, str]:
        return {"more": norm_parameter(self.made.norm), "norms": norm_argument(self.made.norm)}

    def _source(self, *parts: str) -> str:
        return "\n".join((prelude(Arguments(self.made.problem), self.made.norm), self.links.source, *parts))
