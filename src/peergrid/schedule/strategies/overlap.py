"""Boundary region and exchange on a queue of high priority, overlapped with the interior; ordered by events.

The boundary region is computed first and sent while the interior is still being computed, so that a step takes the
longer of the two. Only the closing pass of an exchange interval is split: the passes before it need the ghost cells
everywhere. If a periodic axis is not split, its ghost cells are copied after the halos have arrived: between two
interiors, or, if the boundary region has all that is copied, beside the interior.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.schedule.ops import Event, Op, Queue, Record, Wait
from peergrid.schedule.pass_plan import Pass, PassPlan
from peergrid.schedule.strategies.stream_ordered import send, wait_for_peers, wrap


def overlap(work: PassPlan) -> Iterator[Op]:
    boundaries = [Queue(d, "boundary", -1) for d in work.devices]
    inners = [Queue(d, "interior") for d in work.devices]
    between = bool(work.wraps) and not work.wraps_boundary
    for part in work.passes:
        if not part.closing:
            yield from (work.compute(0, boundary, part) for boundary in boundaries)
            continue
        if work.multi_pass:
            yield from join(work, boundaries, inners, "before split")
        elif not between:
            yield from join(work, inners, boundaries, "interior")
        for boundary, inner in zip(boundaries, inners, strict=True):
            yield from (work.compute(0, boundary, part, box) for box in work.boundary_region(boundary.device))
            if not work.interior[inner.device].empty:
                yield work.compute(0, inner, part, work.interior[inner.device])
        if work.multi_pass:
            yield from wait_for_peers(work, boundaries, "computed")
        elif not between:
            yield from join(work, boundaries, inners, "boundary")
        yield from send(work, boundaries, part)
        yield from wait_for_peers(work, boundaries, "sent")
        yield from wrap_between(work, boundaries, inners, part) if between else wrap(work, boundaries, part)
        if not between and (part.due or work.multi_pass):
            yield from join(work, inners, boundaries, "interior")
        yield from reductions(work, boundaries, inners, part)


def wrap_between(work: PassPlan, boundaries: list[Queue], inners: list[Queue], part: Pass) -> Iterator[Op]:
    """The copies of each device across its own periodic edges, between the computations of both its queues.

    They follow the interior in its queue; without other devices there is no other queue to wait for.
    """
    last = [
        boundary if work.interior[boundary.device].empty else inner
        for boundary, inner in zip(boundaries, inners, strict=True)
    ]
    yield from join(work, boundaries, inners, "arrived")
    yield from wrap(work, last, part)
    yield from join(work, inners, boundaries, "interior")


def reductions(work: PassPlan, boundaries: list[Queue], inners: list[Queue], part: Pass) -> Iterator[Op]:
    """Reductions after the exchange; the next interior, which may overwrite their input, waits for them."""
    if part.due:
        for boundary, inner in zip(boundaries, inners, strict=True):
            alone = not work.divided(boundary.device) and not work.interior[boundary.device].empty
            yield from work.reduce(0, inner if alone else boundary, part)
        yield from join(work, boundaries, inners, "reduced")


def join(work: PassPlan, before: list[Queue], after: list[Queue], name: str) -> Iterator[Op]:
    """On each device with two active queues, one waits for the earlier work of the other."""
    for first, second in zip(before, after, strict=True):
        if work.divided(first.device):
            event = Event(first.device, name)
            yield Record(0, first.device, first, event)
            yield Wait(0, second, event)
