"""Conflicting accesses that nothing orders: two to the same cells, at least one of them a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from peergrid.grid import Box
from peergrid.schedule.access import Access, Place
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import Order

Touched = Sequence[tuple[Access, ...]]
"""The accesses of every operation in `Order.done`."""


@dataclass(slots=True)
class _Traffic:
    """Who reads and who writes each box of one place, as sums of the operations' bits."""

    readers: dict[Box, int] = field(default_factory=dict)
    writers: dict[Box, int] = field(default_factory=dict)
    rivals: dict[tuple[Box, bool], int] = field(default_factory=dict)

    def add(self, access: Access, bit: int) -> None:
        pool = self.writers if access.writes else self.readers
        pool[access.box] = pool.get(access.box, 0) | bit

    def against(self, box: Box, writes: bool) -> int:
        """Everything that conflicts with such an access."""
        known = self.rivals.get((box, writes))
        if known is None:
            known = _overlapping(self.writers, box) | (_overlapping(self.readers, box) if writes else 0)
            self.rivals[box, writes] = known
        return known


def races(order: Order, touched: Touched) -> Iterator[Fault]:
    """One fault for each pair of operations and place in conflict without order."""
    traffic: dict[Place, _Traffic] = {}
    for bit, some in zip(order.bits, touched, strict=True):
        for access in some:
            traffic.setdefault(access.place, _Traffic()).add(access, bit)
    for number, some in enumerate(touched):
        bit, before = order.bits[number], order.before[number]
        for access in some:
            open_ = traffic[access.place].against(access.box, access.writes) & (bit - 1) & ~before
            if open_:
                yield from _faults(order, touched, number, access, open_)
            if access.writes:
                yield from _with_itself(order, number, access, some)


def _faults(order: Order, touched: Touched, number: int, access: Access, rivals: int) -> Iterator[Fault]:
    for other in range(number):
        if not rivals & order.bits[other]:
            continue
        first, second = order.done[other], order.done[number]
        shared = next(
            (a.box & access.box for a in touched[other] if a.place == access.place and a.box.overlaps(access.box)),
            access.box,
        )
        device, name, slot = access.place
        message = (
            f"Race on '{name}' slot {slot} of device {device} in {shared}: nothing makes {second} wait for {first}"
            f"{_hint(order)}."
        )
        yield Fault("race", message, (first.op, second.op))


def _with_itself(order: Order, number: int, access: Access, some: tuple[Access, ...]) -> Iterator[Fault]:
    """An operation that reads in one part what it writes in another: no order holds within an operation."""
    for other in some:
        if not other.writes and other.place == access.place and other.box.overlaps(access.box):
            device, name, slot = access.place
            placed = order.done[number]
            message = (
                f"Race on '{name}' slot {slot} of device {device} in {other.box & access.box}: "
                f"{placed} reads there what it writes itself."
            )
            yield Fault("race", message, (placed.op,))


def _overlapping(pool: dict[Box, int], box: Box) -> int:
    found = 0
    for other, bits in pool.items():
        if box.overlaps(other):
            found |= bits
    return found


def _hint(order: Order) -> str:
    return f"; {order.hollow[0]} waits for an event that was never recorded" if order.hollow else ""
