"""The faults of schedules, in one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from peergrid.schedule.ops import Op

FaultKind = Literal["race", "stale read", "deadlock", "undetermined", "outside", "reduction", "message"]
"""
race          two conflicting accesses that nothing orders
stale read    cells at another time level, or of another place, than the one needed
deadlock      an operation that never runs
undetermined  an order that depends on which host is quicker
outside       an access to cells that the device has no memory for
message       a message that is not received, or taken for another than it is
reduction     a reduction that is due and not made, or not of every cell once
"""


@dataclass(frozen=True)
class Fault:
    """One reason to reject a schedule, with the operations concerned."""

    kind: FaultKind
    message: str
    ops: tuple[Op, ...]

    def __str__(self) -> str:
        return self.message


def count(faults: Iterable[Fault]) -> Counter[FaultKind]:
    """The number of faults of each kind."""
    return Counter(fault.kind for fault in faults)
