"""The proof that a schedule is right, from its operations alone.

Two iterations of a schedule that ends in the slot it starts from stand for any number of them: every iteration issues
the same operations, so what is ordered within an iteration and from one iteration to the next is ordered in all later
ones too (more waits find a record there, never fewer), accesses further apart are ordered through the copies of
themselves in between, and each iteration starts from the levels that the iteration before was shown to leave. The
iteration after it also checks its ghost cells, which it needs at the right level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from peergrid.schedule.access import Reads, declared
from peergrid.schedule.access_table import AccessTable
from peergrid.schedule.build import Schedule, build
from peergrid.schedule.due import unreduced
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import happens_before
from peergrid.schedule.layout import Layout
from peergrid.schedule.levels import stale_reads
from peergrid.schedule.ops import WrappedCompute
from peergrid.schedule.out_of_bounds import misplaced, outside
from peergrid.schedule.passes.wraps import wrap_in_kernels
from peergrid.schedule.races import races
from peergrid.schedule.unroll import Placed, unroll


@dataclass(frozen=True)
class Proof:
    """The extent of a proof, and every reason found to reject the schedule."""

    ops: int
    faults: tuple[Fault, ...]

    @property
    def holds(self) -> bool:
        return not self.faults


def program(layout: Layout, schedule: Schedule) -> tuple[Schedule, ...]:
    """The iterations to check so that a schedule is proved for any number of repetitions.

    A schedule that ends in the slot it starts from is followed by itself, any other by one exchange interval of its
    strategy.
    """
    if schedule.first == schedule.final:
        return (schedule, schedule)
    return (schedule, interval_after(layout, schedule))


def interval_after(layout: Layout, schedule: Schedule) -> Schedule:
    """The exchange interval that reads what a schedule leaves, as its own kernels would: those that read across
    periodic edges leave ghost cells there without values.
    """
    following = build(layout, schedule.options, layout.depth, schedule.final, None)
    wrapped = any(isinstance(op, WrappedCompute) for op in schedule.ops)
    return wrap_in_kernels(layout, following) if wrapped else following


def prove(layout: Layout, iterations: Sequence[Schedule], reads: Reads = declared) -> Proof:
    """Look for races, stale reads, deadlocks, undetermined orders and accesses outside a device's memory.

    iterations: executed one after another without waits in between; reads: the cells that a kernel reads, by default
    its whole footprint.
    """
    ops = sum(len(schedule.ops) for schedule in iterations)
    return Proof(ops, tuple(objections(iterations, AccessTable(layout, iterations, reads))))


def objections(iterations: Sequence[Schedule], table: AccessTable) -> Iterator[Fault]:
    """The faults of a proof, one by one; the table covers their operations and perhaps others."""
    placed = tuple(unroll(iterations))
    order = happens_before(placed)
    yield from order.faults
    if order.faults or not iterations:
        return
    if out_of_bounds := list(_out_of_bounds(placed, table)):
        yield from out_of_bounds
        return
    for schedule in {id(iteration): iteration for iteration in iterations}.values():
        yield from unreduced(table.layout, schedule)
    yield from races(order.accessing, table)
    steps = sum(schedule.steps for schedule in iterations)
    yield from stale_reads(order.accessing, table, iterations[0].first, iterations[-1].final, steps)


def _out_of_bounds(program: Iterable[Placed], table: AccessTable) -> Iterator[Fault]:
    """Accesses outside a device's memory, copies to where cells do not belong: each once, where it first occurs."""
    wrong = set(table.out_of_bounds)
    for placed in program:
        if id(placed.op) in wrong:
            wrong.remove(id(placed.op))
            yield from outside(table.layout, placed, table.accesses[table.use[id(placed.op)]])
            yield from misplaced(table.layout, placed)
