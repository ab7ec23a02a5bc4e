"""The seam between what is computed and how: a kernel advances a box on one device."""

from __future__ import annotations

from typing import Protocol

from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory


class Kernel(Protocol):
    """Advance every state field on `box` by `steps` steps, from slot `source` into slot `target`.

    step: number of the first time step, for signals and receivers; traces: array (receivers, all steps), into which
    the kernel writes the receivers of `recorded` (indices into the problem's receivers) whose cell lies in `box`.
    The kernel holds no state; calls on different memories may run at the same time.
    """

    def __call__(
        self,
        memory: DeviceMemory,
        box: Box,
        source: int,
        target: int,
        step: int,
        steps: int,
        traces: Array,
        recorded: tuple[int, ...],
    ) -> None: ...
