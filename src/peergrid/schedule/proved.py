"""The proof of each schedule before a run executes it, cached with the problem."""

from __future__ import annotations

from peergrid.errors import CheckFailed
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.mend import distinct
from peergrid.schedule.passes import drained
from peergrid.schedule.verify import interval_after, prove
from peergrid.schedule.windows import MANY, objections_by_window
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

SHOWN = 3  # conflicts in a message


def require_right(layout: Layout, schedule: Schedule) -> None:
    """Raise CheckFailed, with a line for each distinct fault, if a schedule cannot be proved right."""
    found = _conflicts(layout.problem, layout.partition, layout.blocks, layout.align, schedule)
    if found:
        more = [f"and {len(found) - SHOWN} more conflicts"] if len(found) > SHOWN else []
        said = "\n".join((*found[:SHOWN], *more))
        raise CheckFailed(f"The schedule of strategy '{schedule.options.strategy}' is wrong, so nothing ran. {said}")


def repeated(layout: Layout, schedule: Schedule) -> tuple[Schedule, ...]:
    """The iterations that prove a schedule: itself twice, or where it ends in the other slot itself, all queues empty,
    and an exchange interval that reads what it left.
    """
    if schedule.first == schedule.final:
        return (schedule, schedule)
    return (drained(schedule), interval_after(layout, schedule))


@remembered()
def _conflicts(
    problem: Problem, partition: Partition, blocks: tuple[int, ...], align: Index, schedule: Schedule
) -> tuple[str, ...]:
    layout = Layout(problem, partition, blocks, align)
    iterations = repeated(layout, schedule)
    if layout.devices >= MANY:
        return distinct(objections_by_window(layout, iterations))
    return distinct(prove(layout, iterations).faults)
