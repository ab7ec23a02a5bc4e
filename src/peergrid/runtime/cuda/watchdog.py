"""The wait that was in vain, in words: the operation, the device, and the missing edge.

A kernel whose wait times out writes a fault record; waits of queues are judged by their semaphores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peergrid.codegen.cuda.service import REPORT
from peergrid.errors import DeviceFault
from peergrid.runtime.cuda.lowering.signals import Edge
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Flag, SignalOp, SignalWait, describe


def blame(schedule: Schedule, fault_log: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Raise DeviceFault where a kernel gave up; the fault log is cleared for the next run.

    Who waits for the smallest value of its flag has waited longest; others only wait for what follows from it.
    """
    words = enumerate(fault_log.reshape(-1, REPORT)[1:, :3])
    reports = [(int(w), int(op) - 1, int(seen), device) for device, (op, w, seen) in words if op]
    fault_log[:] = 0
    if not reports:
        return
    wanted, blamed, seen, device = min(reports)
    op = schedule.ops[blamed]
    if not isinstance(op, SignalWait):
        raise DeviceFault(
            f"Device {device} waited too long at '{describe(op)}': it was complete {seen} times where {wanted} were "
            "due; its blocks, or those of a neighbour, do not advance."
        )
    raise DeviceFault(
        f"'{describe(op)}' waited too long: its flag should have reached {wanted} and stood at {seen}; "
        f"{_missing(schedule, op)}."
    )


def overdue(edges: Mapping[Flag, Edge], due: Mapping[Flag, int], standing: Mapping[Flag, int]) -> str:
    """The word between GPUs that is farthest behind what is due; empty where none is.

    edges: the operations that each word ties; standing: how far each is.
    """
    behind = [(standing[flag] / due[flag], flag) for flag in edges if standing[flag] < due[flag]]
    if not behind:
        return ""
    flag = min(behind)[1]
    signal, wait = edges[flag]
    return (
        f"'{describe(wait)}' waited too long: '{describe(signal)}' on device {signal.queue.device} came "
        f"{standing[flag]} times where {due[flag]} were due; that device does not advance, or its signal was lost."
    )


def _missing(schedule: Schedule, op: SignalWait) -> str:
    """The operation that should have raised the flag."""
    raisers = [o for o in schedule.ops if isinstance(o, SignalOp) and o.flag == op.flag and o.value >= op.value]
    if not raisers:
        return "the schedule has no operation that raises it so far; 'peergrid verify' shows the missing edge"
    return f"'{describe(raisers[0])}' on device {raisers[0].queue.device} never took effect"
