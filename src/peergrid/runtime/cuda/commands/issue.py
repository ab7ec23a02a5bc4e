"""A command buffer issued outside a run."""

from __future__ import annotations

import numpy as np

from peergrid.runtime.cuda.commands.buffer import NOTHING, CommandBuffer
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.faults import error


def issue(devices: Devices, commands: CommandBuffer, subject: str, times: int = 1) -> None:
    """Issue all calls of a buffer from this thread, so many times over.

    Raises DeviceFault or DoesNotFit with the subject where the driver refuses one.
    """
    from peergrid.runtime.cuda.commands.replay import replay  # takes a compiler along, which is slow to come

    abort, spent = (np.zeros(n, np.int64) for n in (1, 3))
    addresses = (int(abort.ctypes.data), int(spent.ctypes.data))
    table, set_context = commands.table, devices.entry("cuCtxSetCurrent")
    state, code, _, _ = replay(table, NOTHING, (table[:0], table[:0]), 2, times, set_context, 1, *addresses)
    if state:
        raise error(int(code), subject)
