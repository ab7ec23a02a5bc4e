"""A host for each GPU, from a schedule whose one host issues for all devices.

Queues of different GPUs are then ordered by words in memory alone, so that no wait depends on which of two hosts issues
first. Each queue, and each event, belongs to one host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Copy, DeviceBarrier, HostBarrier, Op, Sync, Wait, hosts_of, queues_of
from peergrid.schedule.passes.semaphores import Crosses, applicable


@dataclass(frozen=True)
class AssignHosts:
    """The pass; hosts: that of each device, the same for devices of one GPU."""

    hosts: tuple[int, ...]

    def __call__(self, layout: Layout, schedule: Schedule) -> Schedule:
        return replace(schedule, ops=tuple(map(self._issued, schedule.ops)))

    def _issued(self, op: Op) -> Op:
        assert not isinstance(op, Sync | HostBarrier), "a host that waits issues for all"
        host = self.hosts[queues_of(op)[0].device]
        return replace(op, hosts=(host,)) if isinstance(op, DeviceBarrier) else replace(op, host=host)


def hosts_of_gpus(ordinals: Sequence[int], most: int) -> tuple[int, ...]:
    """The host of each device: at most so many, which share GPUs out, neighbours to one."""
    gpus = list(dict.fromkeys(ordinals))
    count = min(len(gpus), most)
    return tuple(gpus.index(ordinal) * count // len(gpus) for ordinal in ordinals)


def separable(schedule: Schedule, ordinals: Sequence[int], crosses: Crosses) -> bool:
    """True if one host issues for several GPUs and waits for nothing, and words order the GPUs.

    Copies between GPUs through host memory stay with one host, in the order of the schedule: the copy engine of a GPU
    may first serve a copy that waits for later work of that GPU.
    """
    ops = schedule.ops
    if len(set(ordinals)) < 2 or len({host for op in ops for host in hosts_of(op)}) != 1:
        return False
    if schedule.options.route == "host" or any(isinstance(op, Sync | HostBarrier) for op in ops):
        return False
    words = applicable(schedule, tuple(ordinals))
    return all(_within(op, ordinals, crosses, words) for op in ops)


def _within(op: Op, ordinals: Sequence[int], crosses: Crosses, words: bool) -> bool:
    match op:
        case DeviceBarrier():
            return len({ordinals[queue.device] for queue in op.queues}) == 1
        case Wait():
            source, target = op.event.device, op.queue.device
            return ordinals[source] == ordinals[target] or (words and crosses(source, target))
        case Copy():
            source, target = op.source_device, op.target_device
            return ordinals[source] == ordinals[target] or crosses(source, target)
    return True
