"""One host for each device; barriers of the hosts separate the computation and the use of a halo."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.schedule.ops import HostBarrier, Op, Queue, Sync
from peergrid.schedule.pass_plan import PassPlan


def threads(work: PassPlan) -> Iterator[Op]:
    queues = [Queue(d, "main") for d in work.devices]
    everyone = HostBarrier(tuple(work.devices))
    for part in work.passes:
        yield from (work.compute(queue.device, queue, part) for queue in queues)
        if not part.closing:
            continue
        if work.multi_pass:
            yield from (Sync(queue.device, queue) for queue in queues)
            yield everyone
        for number, stage in enumerate(work.stages):
            if number and work.separate:
                yield from (Sync(queue.device, queue) for queue in queues)
                yield everyone
            yield from (work.copy(halo.source, queues[halo.source], part, halo) for halo in stage)
        yield from (Sync(queue.device, queue) for queue in queues)
        yield everyone
        yield from (work.copy(halo.source, queues[halo.source], part, halo) for halo in work.wraps)
        for queue in queues:
            yield from work.reduce(queue.device, queue, part)
