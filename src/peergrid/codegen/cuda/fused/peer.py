"""One pass on one device whose boundary tiles deal with the neighbours themselves: await, compute, store across,
signal.

Boundary tiles come first in block order, so that they wait and deliver while the other tiles compute. As in
`blocked2d.pass_kernel` a pass is two launches, of interior and of boundary tiles, which may run at the same time; each
kernel takes `Arguments` and `Exchange`, and the pass ends when both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.strips.kernel import left
from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.cuda.fused.exchange import ExchangeTables
from peergrid.grid import Box

INSTEAD, WAVES = 3, 2  # tiles of strips that run at once where an interior one is missing, and one after another


@dataclass(frozen=True)
class PeerKernel(PassKernel):
    """A pass with the exchange in it. Check `exchange.supports` first.

    recorded: whether tiles note what they do.
    """

    recorded: bool = False

    pointers = False

    @classmethod
    def of(cls, made: PassKernel) -> PeerKernel:
        """The pass whose tiles are computed as those of another one."""
        return cls(**_fields(made))

    @property
    def made(self) -> PassKernel:
        """The same pass without the exchange."""
        return PassKernel(**_fields(self))

    def around(self, registers: int) -> PeerKernel:
        """See `PassKernel`; tiles of strips begin behind the interior ones here, in the place of some that ended."""
        return replace(self, beside=left(registers, INSTEAD))

    @cached_property
    def links(self) -> ExchangeTables:
        return ExchangeTables(self.problem, self.steps, self.recorded)

    @property
    def tables(self) -> str:
        return self.links.source

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches that advance a device's box and exchange its boundary region (see `PassKernel.launches`)."""
        found = super().launches(box, slots - self._reserved(box, slots), recorded)
        return tuple(replace(launch, regions=self.links.boundary_first(box, launch.regions)) for launch in found)

    def _reserved(self, box: Box, slots: int) -> int:
        """Interior tiles that make room for a strip along axis 0, whose many tiles wait until the interior ones have
        begun.

        Then as good as nothing is left for them where these fill the device: fewer and longer ones cost less. Where
        rows wrap, a strip along axis 0 is what is left of a block of norms, a few rows that are soon done.
        """
        if self.problem.grid.periodic[0]:
            return 0
        inside = ((strip, box & strip.box) for strip in self.strips if strip.axis == 0)
        tiles = sum(-(-part.shape[1] // strip.columns) for strip, part in inside if not part.empty)
        return min(slots // 2, tiles // (INSTEAD * WAVES))


def _fields(made: PassKernel) -> dict[str, Any]:
    """The data of a `PassKernel`."""
    return {field.name: getattr(made, field.name) for field in fields(PassKernel)}
