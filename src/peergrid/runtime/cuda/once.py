"""A command buffer issued a single time, outside a run."""

from __future__ import annotations

import numpy as np

from peergrid.runtime.cuda.commands.buffer import NOTHING, CommandBuffer
from peergrid.runtime.cuda.commands.replay import replay
from peergrid.runtime.cuda.device.faults import error


def issue_once(commands: CommandBuffer, set_context: int, subject: str) -> None:
    """Issue all calls of a buffer; set_context: the address of cuCtxSetCurrent.

    Raises DeviceFault or DoesNotFit with the subject where the driver refuses one.
    """
    abort, spent = (np.zeros(n, np.int64) for n in (1, 3))
    addresses = (int(abort.ctypes.data), int(spent.ctypes.data))
    table = commands.table
    state, code, _, _ = replay(table, NOTHING, (table[:0], table[:0]), 2, 1, set_context, 1, *addresses)
    if state:
        raise error(int(code), subject)
