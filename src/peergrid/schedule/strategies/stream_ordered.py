"""One host that never blocks: copies follow the computation in the device's queue, events order neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peergrid.schedule.ops import Event, Op, Queue, Record, Wait
from peergrid.schedule.pass_plan import Pass, PassPlan


def stream_ordered(work: PassPlan) -> Iterator[Op]:
    queues = [Queue(d, "main") for d in work.devices]
    for part in work.passes:
        yield from (work.compute(0, queue, part) for queue in queues)
        if part.closing:
            if work.multi_pass:
                yield from wait_for_peers(work, queues, "computed")
            yield from send(work, queues, part)
            yield from wait_for_peers(work, queues, "sent")
            yield from wrap(work, queues, part)
            for queue in queues:
                yield from work.reduce(0, queue, part)


def send(work: PassPlan, queues: Sequence[Queue], part: Pass) -> Iterator[Op]:
    """The halos, stage by stage, each in its source's queue; neighbours wait for each other between separate stages."""
    for number, stage in enumerate(work.stages):
        if number and work.separate:
            yield from wait_for_peers(work, queues, f"stage {number}")
        yield from (work.copy(0, queues[halo.source], part, halo) for halo in stage)


def wrap(work: PassPlan, queues: Sequence[Queue], part: Pass) -> Iterator[Op]:
    """The copies of each device across its own periodic edges, in its queue, once the halos have arrived."""
    yield from (work.copy(0, queues[halo.source], part, halo) for halo in work.wraps)


def wait_for_peers(work: PassPlan, queues: Sequence[Queue], name: str) -> Iterator[Op]:
    """Every queue records an event, and waits for those of the device's peers."""
    events = [Event(queue.device, name) for queue in queues]
    yield from (Record(0, q.device, q, e) for q, e in zip(queues, events, strict=True) if work.peers[q.device])
    yield from (Wait(0, queue, events[peer]) for queue in queues for peer in work.peers[queue.device])
