"""The proof that a schedule is right, from its list of operations alone.

Two turns of a schedule that ends in the slot it starts from stand for any number of them: every turn issues the same
operations, so what is ordered within a turn and from one turn to the next is ordered in all later ones too (more waits
find a record there, never fewer), accesses further apart are ordered through the copies of themselves in between, and
each turn starts from the levels that the turn before was shown to leave. What follows a turn also checks its ghost
cells: whoever reads them needs them at the right level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peergrid.errors import CheckFailed
from peergrid.schedule.access import Access, Reads, accesses, declared
from peergrid.schedule.build import Schedule, build
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import Order, happens_before
from peergrid.schedule.layout import Layout
from peergrid.schedule.levels import misplaced, stale_reads
from peergrid.schedule.ops import Compute, Copy
from peergrid.schedule.races import races
from peergrid.schedule.unroll import Placed, unroll


@dataclass(frozen=True)
class Proof:
    """What was looked at, and every reason found to reject it."""

    ops: int
    faults: tuple[Fault, ...]

    @property
    def holds(self) -> bool:
        return not self.faults


def program(layout: Layout, schedule: Schedule) -> tuple[Schedule, ...]:
    """The turns that have to be looked at so that a schedule is proved for good, however often it is repeated.

    A schedule that ends in the slot it starts from is followed by itself, any other by one cycle of its strategy.
    """
    if schedule.first == schedule.final:
        return (schedule, schedule)
    return (schedule, build(layout, schedule.options, layout.depth, schedule.final))


def prove(layout: Layout, turns: Sequence[Schedule], reads: Reads = declared) -> Proof:
    """Look for races, stale reads, deadlocks, undetermined orders and accesses outside a device's memory.

    turns: carried out one after another, with nothing in between that waits for anything;
    reads: which cells a kernel reads, by default all that its footprint allows it to.
    """
    placed = tuple(unroll(turns))
    order = happens_before(placed)
    if order.faults or not turns:
        return Proof(len(placed), order.faults)
    known: dict[int, tuple[Access, ...]] = {}
    faults: list[Fault] = []
    for each in placed:
        if isinstance(each.op, Compute | Copy) and id(each.op) not in known:
            known[id(each.op)] = accesses(layout, each.op, reads)
            faults.extend(_outside(layout, each, known[id(each.op)]))
            faults.extend(misplaced(layout, each))
    if not faults:
        faults.extend(_touching(layout, turns, order, known))
    return Proof(len(placed), tuple(faults))


def require(proof: Proof) -> None:
    """Raise CheckFailed with the first reason to reject a schedule, if there is one."""
    if proof.faults:
        more = f" ({len(proof.faults) - 1} more faults)" if len(proof.faults) > 1 else ""
        raise CheckFailed(f"{proof.faults[0]}{more}")


def _touching(
    layout: Layout, turns: Sequence[Schedule], order: Order, known: dict[int, tuple[Access, ...]]
) -> list[Fault]:
    chosen = [i for i, placed in enumerate(order.done) if isinstance(placed.op, Compute | Copy)]
    narrow = Order(
        tuple(order.done[i] for i in chosen),
        tuple(order.bits[i] for i in chosen),
        tuple(order.before[i] for i in chosen),
        (),
        order.hollow,
    )
    touched = [known[id(placed.op)] for placed in narrow.done]
    steps = sum(schedule.steps for schedule in turns)
    found = list(races(narrow, touched))
    return found + stale_reads(layout, narrow, touched, turns[0].first, turns[-1].final, steps)


def _outside(layout: Layout, placed: Placed, some: tuple[Access, ...]) -> list[Fault]:
    faults: list[Fault] = []
    for access in some:
        device, name, slot = access.place
        held = layout.local(device, name) if device < layout.devices and slot in (0, 1) else None
        if held is None or not held.covers(access.box):
            message = (
                f"Outside: {placed} {'writes' if access.writes else 'reads'} '{name}' slot {slot} of device {device} "
                f"in {access.box}, the device holds {held if held is not None else 'no such slot'}."
            )
            faults.append(Fault("outside", message, (placed.op,)))
    return faults
