"""The protocol of kernels that make no stencil's update, for passes of one step."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from peergrid.codegen.cuda.common.program import Program
from peergrid.grid import Box
from peergrid.runtime.cuda.device.devices import Devices


class OwnKernel(Protocol):
    """A kernel that advances the cells of a box by one step.

    It takes two structs: `Arguments` of the problem, with the box in `lo` and `hi`, and what `tables` gives.
    """

    @property
    def program(self) -> Program:
        """The kernel; its text defines `Arguments`."""

    @property
    def counts_steps(self) -> bool:
        """True where it asks which step it makes, of `step` and `clock`."""

    def bytes(self, owned: Box) -> int:
        """Bytes of device memory that the tables of a device take."""

    def blocks(self, box: Box) -> int:
        """The thread blocks of a launch."""

    def tables(self, devices: Devices, device: int, owned: Box) -> NDArray[Any]:
        """Tables in the memory of a device, as the struct that names them, shape (1,)."""
