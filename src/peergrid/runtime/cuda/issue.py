"""A command buffer issued outside a run."""

from __future__ import annotations

import numpy as np

from peergrid.runtime.cuda.commands.buffer import NOTHING, CommandBuffer
from peergrid.runtime.cuda.commands.replay import replay
from peergrid.runtime.cuda.device.faults import error


def issue(commands: CommandBuffer, set_context: int, subject: str, times: int = 1) -> None:
    """Issue all calls of a buffer, so many times over; set_context: the address of cuCtxSetCurrent.

    Raises DeviceFault or DoesNotFit with the subject where the driver refuses one.
    """
    abort, spent = (np.zeros(n, np.int64) for n in (1, 3))
    addresses = (int(abort.ctypes.data), int(spent.ctypes.data))
    table = commands.table
    state, code, _, _ = replay(table, NOTHING, (table[:0], table[:0]), 2, times, set_context, 1, *addresses)
    if state:
        raise error(int(code), subject)
