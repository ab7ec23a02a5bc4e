"""One kernel per pass and device: its rim tiles await the neighbours' flags, compute, store their results straight
into the neighbours' ghost cells and raise the neighbours' flags, while its other tiles compute the interior.

In the schedule the tiles of one kernel are two queues that meet where the kernel ends; no host and no event ties one
device to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from peergrid.schedule.ops import Await, Flag, Op, Queue, Raise
from peergrid.schedule.strategies.overlap import join, reductions, wrap_between
from peergrid.schedule.work import Work


def peer(work: Work) -> Iterator[Op]:
    rims = [Queue(d, "rim", -1) for d in work.devices]
    inners = [Queue(d, "interior") for d in work.devices]
    exchanges = count()
    for part in work.passes:
        if not part.closing:
            yield from (work.compute(0, rim, part) for rim in rims)
            continue
        number = next(exchanges)
        if work.deep:
            yield from tell(work, rims, "ready", number + 1)
            yield from join(work, rims, inners, "deep")
        for rim, inner in zip(rims, inners, strict=True):
            yield from (work.compute(0, rim, part, box) for box in work.rim(rim.device))
            if not work.interior[inner.device].empty:
                yield work.compute(0, inner, part, work.interior[inner.device])
        if work.deep:
            yield from listen(work, rims, "ready", number + 1)
        yield from (work.copy(0, rims[halo.source], part, halo) for stage in work.stages for halo in stage)
        yield from tell(work, rims, "halo", number + 1)
        if not work.wraps:
            yield from join(work, inners, rims, "interior")
            if not work.deep:
                yield from join(work, rims, inners, "rim")
        yield from listen(work, rims, "halo", number + 1)
        if work.wraps:
            yield from wrap_between(work, rims, inners, part)
        yield from reductions(work, rims, inners, part)


def tell(work: Work, queues: list[Queue], name: str, value: int) -> Iterator[Op]:
    """Every device raises its flag at each of its peers."""
    for queue in queues:
        for other in work.peers[queue.device]:
            yield Raise(0, queue, Flag(other, f"{name} from {queue.device}"), value)


def listen(work: Work, queues: list[Queue], name: str, value: int) -> Iterator[Op]:
    """Every device awaits the flags of all its peers."""
    for queue in queues:
        for other in work.peers[queue.device]:
            yield Await(0, queue, Flag(queue.device, f"{name} from {other}"), value)
