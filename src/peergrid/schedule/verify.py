"""The proof that a schedule is right, from its list of operations alone.

Two turns of a schedule that ends in the slot it starts from stand for any number of them: every turn issues the same
operations, so what is ordered within a turn and from one turn to the next is ordered in all later ones too (more waits
find a record there, never fewer), accesses further apart are ordered through the copies of themselves in between, and
each turn starts from the levels that the turn before was shown to leave. What follows a turn also checks its ghost
cells: whoever reads them needs them at the right level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from peergrid.errors import CheckFailed
from peergrid.schedule.access import Reads, declared
from peergrid.schedule.build import Schedule, build
from peergrid.schedule.claims import Claims
from peergrid.schedule.due import unreduced
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import happens_before
from peergrid.schedule.layout import Layout
from peergrid.schedule.levels import stale_reads
from peergrid.schedule.misfits import misplaced, outside
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
    ops = sum(len(schedule.ops) for schedule in turns)
    return Proof(ops, tuple(objections(turns, Claims(layout, turns, reads))))


def objections(turns: Sequence[Schedule], claims: Claims) -> Iterator[Fault]:
    """The faults of a proof, one by one; the claims cover the turns' operations and perhaps others."""
    placed = tuple(unroll(turns))
    order = happens_before(placed)
    yield from order.faults
    if order.faults or not turns:
        return
    if misfits := list(_misfits(placed, claims)):
        yield from misfits
        return
    for schedule in {id(turn): turn for turn in turns}.values():
        yield from unreduced(claims.layout, schedule)
    yield from races(order.touching, claims)
    steps = sum(schedule.steps for schedule in turns)
    yield from stale_reads(order.touching, claims, turns[0].first, turns[-1].final, steps)


def require(proof: Proof) -> None:
    """Raise CheckFailed with the first reason to reject a schedule, if there is one."""
    if proof.faults:
        more = f" ({len(proof.faults) - 1} more faults)" if len(proof.faults) > 1 else ""
        raise CheckFailed(f"{proof.faults[0]}{more}")


def _misfits(program: Iterable[Placed], claims: Claims) -> Iterator[Fault]:
    """Accesses outside a device's memory, copies to where cells do not belong: each once, where it first occurs."""
    wrong = set(claims.misfits)
    for placed in program:
        if id(placed.op) in wrong:
            wrong.remove(id(placed.op))
            yield from outside(claims.layout, placed, claims.accesses[claims.use[id(placed.op)]])
            yield from misplaced(claims.layout, placed)
