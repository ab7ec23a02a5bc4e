"""One host with blocking copies, the simplest program: devices compute together, then halos are copied one after
another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from peergrid.schedule.ops import Op, Queue, Sync
from peergrid.schedule.pass_plan import PassPlan


def serial(work: PassPlan) -> Iterator[Op]:
    queues = [Queue(d, "main") for d in work.devices]
    for part in work.passes:
        yield from (work.compute(0, queue, part) for queue in queues)
        yield from (Sync(0, queue) for queue in queues)
        for halo in (*chain.from_iterable(work.stages), *work.wraps) if part.closing else ():
            yield work.copy(0, queues[halo.source], part, halo)
            yield Sync(0, queues[halo.source])
        for queue in queues:
            yield from work.reduce(0, queue, part)
