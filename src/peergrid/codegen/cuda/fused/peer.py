"""One pass on one device whose boundary tiles deal with the neighbours themselves: await, compute, store across, tell.

Boundary tiles come first in block order, so that they wait and deliver while the other tiles compute. As in
`blocked2d.pass_kernel` a pass is two launches, of plain and of edge tiles, which may run at the same time; each kernel
takes `Arguments` and `Exchange`, and the pass ends when both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from peergrid.codegen.cuda.blocked.program import Launch, Program
from peergrid.codegen.cuda.blocked2d.kernel import Kernel2D, program
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.stream.kernel import interior
from peergrid.codegen.cuda.blocked2d.strips.kernel import left
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.fused.exchange import ExchangeTables
from peergrid.grid import Box
from peergrid.stencil import Problem

INSTEAD, WAVES = 3, 2  # tiles of strips that run at once where a plain one is missing, and one after another


@dataclass(frozen=True)
class PeerKernel:
    """A pass with the exchange in it; `made` says how its tiles are computed. Check `exchange.supports` first.

    recorded: whether tiles note what they do.
    """

    made: PassKernel
    recorded: bool = False

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
        """See `PassKernel`; tiles of strips begin behind the plain ones here, in the place of some that ended."""
        return replace(self, made=replace(self.made, beside=left(registers, INSTEAD)))

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """The rest that tiles leave of a box: nothing."""
        return ()

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> PeerKernel:
        """See `PassKernel`."""
        return replace(self, made=self.made.shorter(box, edge_slots, plain_slots))

    @cached_property
    def links(self) -> ExchangeTables:
        return ExchangeTables(Arguments(self.made.problem), self.made.shape.steps, self.recorded)

    @cached_property
    def plain(self) -> Program:
        return self._program(interior(replace(self.made.stream, pointers=False)))

    @cached_property
    def layer(self) -> Program | None:
        return None if self.made.layers is None else self._program(self.made.layers.kernel)

    @cached_property
    def edge(self) -> Program:
        return self._program(self.made.edges.kernel)

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches that advance a device's box and exchange its boundary region (see `PassKernel.launches`)."""
        programs = {self.made.plain: self.plain, self.made.layer: self.layer, self.made.edge: self.edge}
        return tuple(
            replace(
                launch,
                program=programs[launch.program] or launch.program,
                regions=self.links.boundary_first(box, launch.regions),
            )
            for launch in self.made.launches(box, slots - self._reserved(box, slots), recorded)
        )

    def _reserved(self, box: Box, slots: int) -> int:
        """Plain tiles that make room for a strip along axis 0, whose many tiles wait until the plain ones have begun.

        Then as good as nothing is left for them where these fill the device: fewer and longer ones cost less. Where
        rows wrap, a strip along axis 0 is what is left of a block of norms, a few rows that are soon done.
        """
        if self.problem.grid.periodic[0]:
            return 0
        inside = ((strip, box & strip.box) for strip in self.made.strips if strip.axis == 0)
        tiles = sum(-(-part.shape[1] // strip.columns) for strip, part in inside if not part.empty)
        return min(slots // 2, tiles // (INSTEAD * WAVES))

    def counts(self, box: Box, launches: Sequence[Launch]) -> tuple[int, int]:
        """The boundary tiles of a device, at the low and the high end of its box: what counters get in a pass."""
        return self.links.counts(box, (launch.regions for launch in launches))

    @property
    def dtype(self) -> np.dtype[Any]:
        """`Exchange` for NumPy."""
        return self.links.dtype()

    def _program(self, kernel: Kernel2D) -> Program:
        """A program with the exchange in its kernel."""
        return program(self.problem, kernel, self.links.source)
