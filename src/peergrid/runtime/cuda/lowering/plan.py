"""The protocol of kernel plans: how passes of one length over known boxes are made.

A plan is a value: it names the texts to compile before any device has memory, and gives the launches once one has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from peergrid.codegen.cuda.common.pitches import Pitched
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.stream3d.rotation import Rotation
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.programs import Needed
from peergrid.stencil import Problem

Boxes = tuple[Box, ...]
Work = tuple[int, Boxes]
"""A device, and what it advances in one pass."""
Works = tuple[Work, ...]
Served = Iterator[tuple[str, str]]
"""Names of kernels, each with the cells that it serves, in words."""


@dataclass(frozen=True)
class Setting:
    """The input of plans: a problem, a model of the GPUs, and the receivers that each device records.

    rotation: of the problem whose step this one is, where fields rotate; pitched: of the layout's fields, of which
    the problem may have a part, or boxes of a part.
    """

    problem: Problem
    gpu: GpuModel
    recorded: tuple[tuple[int, ...], ...]
    rotation: Rotation | None = None
    pitched: Pitched = ()


class Texts(Protocol):
    """The texts that are compiled, and their purposes."""

    def needed(self) -> Needed:
        """The texts of all that will be launched, as far as boxes determine them: the memory of a device changes the
        tiles.
        """

    def served(self) -> Served:
        """The cells that each kernel serves."""


class KernelPlan(Texts, Protocol):
    """Passes of one length over known boxes; streams: whether tiles stay for a whole pass of one step."""

    streams: ClassVar[bool] = False

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        """The launches that advance the boxes on a device, in order."""

    def sums(self, execution: ExecutionContext, device: int) -> KernelLaunch | None:
        """The launch that adds up what the others left of the norms, when all that the device owns is done."""
        return None

    def wraps(self, owned: Callable[[int], Box]) -> bool:
        """True where all cells are made by kernels that read across the periodic edges of what their device owns."""
        return False
