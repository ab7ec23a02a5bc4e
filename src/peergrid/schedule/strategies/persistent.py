"""One kernel per device for all steps: compute, store the halos into the neighbours, wait at a barrier of all
devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.schedule.ops import DeviceBarrier, Op, Queue
from peergrid.schedule.pass_plan import PassPlan
from peergrid.schedule.strategies.stream_ordered import wrap


def persistent(work: PassPlan) -> Iterator[Op]:
    queues = tuple(Queue(d, "main") for d in work.devices)
    everyone = DeviceBarrier(queues, (0,))
    for part in work.passes:
        yield from (work.compute(0, queue, part) for queue in queues)
        if not part.closing:
            continue
        if work.multi_pass:
            yield everyone
        for number, stage in enumerate(work.stages):
            if number and work.separate:
                yield everyone
            yield from (work.copy(0, queues[halo.source], part, halo) for halo in stage)
        yield everyone
        yield from wrap(work, queues, part)
        for queue in queues:
            yield from work.reduce(0, queue, part)
