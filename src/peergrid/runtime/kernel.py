"""The interface of kernels: a kernel advances a box on one device."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory


class Pass(NamedTuple):
    """A pass over a box: every state field is advanced by `steps` steps, from slot `source` into slot `target`.

    step: number of the first time step, for signals and receivers; traces: array (receivers, all steps), into which
    the receivers of `recorded` (indices into the problem's receivers) whose cell lies in the box are written.
    """

    box: Box
    source: int
    target: int
    step: int
    steps: int
    traces: Array
    recorded: tuple[int, ...] = ()


class Kernel(Protocol):
    """The computation of passes in the memory of a device.

    It has no state; calls on different memories may run concurrently.
    """

    def __call__(self, memory: DeviceMemory, part: Pass) -> None: ...
