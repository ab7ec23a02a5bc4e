"""Lowering as a chain of pure passes, schedule → schedule; GPUs execute the last result.

Each result is a schedule like any other, with declared reads, writes and orders, so that both checkers can check it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import HostBarrier, Op, Sync, hosts_of, queues_of


@dataclass(frozen=True)
class LoweringPass:
    """One step of a lowering; name: a short description."""

    name: str
    apply: Callable[[Layout, Schedule], Schedule]


Chain = Sequence[LoweringPass]


def apply_passes(layout: Layout, schedule: Schedule, chain: Chain) -> Schedule:
    """The schedule after all passes of a chain."""
    for one in chain:
        schedule = one.apply(layout, schedule)
    return schedule


def drained(schedule: Schedule) -> Schedule:
    """The schedule with waits of the hosts for their queues and for each other at its end, as between schedules."""
    host_of = {queue: hosts_of(op)[0] for op in schedule.ops for queue in queues_of(op)}
    hosts = tuple(sorted({host for op in schedule.ops for host in hosts_of(op)}))
    ends: list[Op] = [*(Sync(host, queue) for queue, host in sorted(host_of.items())), HostBarrier(hosts)]
    return replace(schedule, ops=(*schedule.ops, *ends))
