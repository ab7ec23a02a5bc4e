"""Rim and exchange on a queue of high priority, the interior beside them; events tie them together.

The rim is computed first and sent while the interior is still being computed, so that a step takes the longer of
the two. Only the closing pass of a cycle is split: the passes before it need the ghost cells everywhere. Where an axis
wraps within each device, its ghost cells are copied between two interiors, when the halos have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.schedule.ops import Event, Op, Queue, Record, Wait
from peergrid.schedule.strategies.stream_ordered import meet, send, wrap
from peergrid.schedule.work import Pass, Work


def overlap(work: Work) -> Iterator[Op]:
    rims = [Queue(d, "rim", -1) for d in work.devices]
    inners = [Queue(d, "interior") for d in work.devices]
    for part in work.passes:
        if not part.closing:
            yield from (work.compute(0, rim, part) for rim in rims)
            continue
        if work.deep:
            yield from join(work, rims, inners, "deep")
        for rim, inner in zip(rims, inners, strict=True):
            yield from (work.compute(0, rim, part, box) for box in work.rim(rim.device))
            if not work.interior[inner.device].empty:
                yield work.compute(0, inner, part, work.interior[inner.device])
        if work.deep:
            yield from meet(work, rims, "computed")
        elif not work.wraps:
            yield from join(work, rims, inners, "rim")
        yield from send(work, rims, part)
        if not work.wraps:
            yield from join(work, inners, rims, "interior")
        yield from meet(work, rims, "sent")
        if work.wraps:
            yield from wrap_between(work, rims, inners, part)
        yield from reductions(work, rims, inners, part)


def wrap_between(work: Work, rims: list[Queue], inners: list[Queue], part: Pass) -> Iterator[Op]:
    """What each device copies across periodic edges of its own, between what both its queues compute before and after.

    It follows the interior in its queue: without other devices there is no other queue to wait for.
    """
    last = [rim if work.interior[rim.device].empty else inner for rim, inner in zip(rims, inners, strict=True)]
    yield from join(work, rims, inners, "arrived")
    yield from wrap(work, last, part)
    yield from join(work, inners, rims, "interior")


def reductions(work: Work, rims: list[Queue], inners: list[Queue], part: Pass) -> Iterator[Op]:
    """Behind the exchange; the next interior, which may overwrite what is reduced, waits for them."""
    if part.due:
        for rim, inner in zip(rims, inners, strict=True):
            alone = not work.divided(rim.device) and not work.interior[rim.device].empty
            yield from work.reduce(0, inner if alone else rim, part)
        yield from join(work, rims, inners, "reduced")


def join(work: Work, before: list[Queue], after: list[Queue], name: str) -> Iterator[Op]:
    """On each device that has two queues at work, one waits for what the other holds so far."""
    for first, second in zip(before, after, strict=True):
        if work.divided(first.device):
            event = Event(first.device, name)
            yield Record(0, first.device, first, event)
            yield Wait(0, second, event)
