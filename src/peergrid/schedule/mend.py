"""Faults as text: one line for each distinct conflict, with the order that would mend it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import Op, queues_of


def distinct(faults: Iterable[Fault]) -> tuple[str, ...]:
    """A line for the first fault of each kind between operations of the same kinds in the same queues."""
    found: dict[Hashable, list[Fault]] = {}
    for fault in faults:
        found.setdefault((fault.kind, tuple(map(_place, fault.ops))), []).append(fault)
    return tuple(_line(alike[0], len(alike) - 1) for alike in found.values())


def _place(op: Op) -> Hashable:
    return type(op).__name__, queues_of(op)


def _line(fault: Fault, more: int) -> str:
    also = f" ({more} more between the same queues)" if more else ""
    return f"{fault.message}{_mended(fault)}{also}"


def _mended(fault: Fault) -> str:
    """A sentence on how to mend a fault; '' if the message has it already."""
    if fault.kind == "stale read" and fault.ops:
        return " What brings that level, a computation or a copy, has to be there, and to be ordered before."
    if fault.kind != "race" or len(fault.ops) < 2:
        return ""
    (first, *_), (second, *_) = (queues_of(op) for op in fault.ops[:2])
    return f" To mend it, record an event in {first} behind the second of these and let {second} wait for it."
