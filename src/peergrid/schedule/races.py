"""Conflicting accesses that nothing orders: two to the same cells, at least one of them a write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from peergrid.schedule.access import Access
from peergrid.schedule.access_table import AccessTable, Use, clashes
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import Order
from peergrid.schedule.unroll import Placed


def races(order: Order, table: AccessTable) -> Iterator[Fault]:
    """One fault for each pair of accesses in conflict without order.

    order: of computations and copies alone; conflicts are those of the table, whatever the order.
    """
    uses = [table.use[id(placed.op)] for placed in order.done]
    carried_out: dict[Use, int] = {}
    for use, bit in zip(uses, order.bits, strict=True):
        carried_out[use] = carried_out.get(use, 0) | bit
    conflicts = {
        use: reduce(or_, map(carried_out.__getitem__, table.conflicts[use] & carried_out.keys()), 0)
        for use in carried_out
    }
    for placed, use, bit, before in zip(order.done, uses, order.bits, order.before, strict=True):
        unordered = conflicts[use] & (bit - 1) & ~before
        if unordered or use in table.in_place:
            others = [other for other, its in zip(order.done, order.bits, strict=True) if unordered & its]
            yield from _faults(order, table, placed, others)


def _faults(order: Order, table: AccessTable, placed: Placed, others: list[Placed]) -> Iterator[Fault]:
    some = table.accesses[table.use[id(placed.op)]]
    for access in some:
        for other in others:
            shared = next(_shared(access, table.accesses[table.use[id(other.op)]]), None)
            if shared is not None:
                device, name, slot = access.buffer
                message = (
                    f"Race on '{name}' slot {slot} of device {device} in {shared.box & access.box}: "
                    f"nothing makes {placed} wait for {other}{_hint(order)}."
                )
                yield Fault("race", message, (other.op, placed.op))
    for write, read in clashes(some):
        device, name, slot = write.buffer
        message = (
            f"Race on '{name}' slot {slot} of device {device} in {read.box & write.box}: "
            f"{placed} reads there what it writes itself."
        )
        yield Fault("race", message, (placed.op,))


def _shared(access: Access, others: tuple[Access, ...]) -> Iterator[Access]:
    """The accesses in conflict with one."""
    for other in others:
        if other.buffer == access.buffer and (other.writes or access.writes) and other.box.overlaps(access.box):
            yield other


def _hint(order: Order) -> str:
    return f"; {order.unrecorded[0]} waits for an event that was never recorded" if order.unrecorded else ""
