"""One kernel per pass and device: its boundary tiles wait for the neighbours' flags, compute, store their results into
the neighbours' ghost cells and set the neighbours' flags, while its other tiles compute the interior.

In the schedule the tiles of one kernel are two queues that join at the end of the kernel; neither hosts nor events
order different devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from peergrid.schedule.ops import Flag, Op, Queue, SignalOp, SignalWait
from peergrid.schedule.pass_plan import PassPlan
from peergrid.schedule.strategies.overlap import join, reductions, wrap_between
from peergrid.schedule.strategies.stream_ordered import wrap


def peer(work: PassPlan) -> Iterator[Op]:
    boundaries = [Queue(d, "boundary", -1) for d in work.devices]
    inners = [Queue(d, "interior") for d in work.devices]
    exchanges, between = count(), bool(work.wraps) and not work.wraps_boundary
    for part in work.passes:
        if not part.closing:
            yield from (work.compute(0, boundary, part) for boundary in boundaries)
            continue
        number = next(exchanges)
        if work.multi_pass:
            yield from signal_peers(work, boundaries, "ready", number + 1)
            yield from join(work, boundaries, inners, "before split")
        for boundary, inner in zip(boundaries, inners, strict=True):
            yield from (work.compute(0, boundary, part, box) for box in work.boundary_region(boundary.device))
            if not work.interior[inner.device].empty:
                yield work.compute(0, inner, part, work.interior[inner.device])
        if work.multi_pass:
            yield from wait_for_signals(work, boundaries, "ready", number + 1)
        yield from (work.copy(0, boundaries[halo.source], part, halo) for stage in work.stages for halo in stage)
        yield from signal_peers(work, boundaries, "halo", number + 1)
        if not between:
            yield from join(work, inners, boundaries, "interior")
            if not work.multi_pass:
                yield from join(work, boundaries, inners, "boundary")
        yield from wait_for_signals(work, boundaries, "halo", number + 1)
        yield from wrap_between(work, boundaries, inners, part) if between else wrap(work, boundaries, part)
        yield from reductions(work, boundaries, inners, part)


def signal_peers(work: PassPlan, queues: list[Queue], name: str, value: int) -> Iterator[Op]:
    """Every device sets its flag at each of its peers."""
    for queue in queues:
        for other in work.peers[queue.device]:
            yield SignalOp(0, queue, Flag(other, f"{name} from {queue.device}"), value)


def wait_for_signals(work: PassPlan, queues: list[Queue], name: str, value: int) -> Iterator[Op]:
    """Every device awaits the flags of all its peers."""
    for queue in queues:
        for other in work.peers[queue.device]:
            yield SignalWait(0, queue, Flag(queue.device, f"{name} from {other}"), value)
