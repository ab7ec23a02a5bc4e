"""The check that every due reduction is made, of every cell once, by its owner, and no other reduction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from peergrid.schedule.build import Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Reduce, describe
from peergrid.schedule.pass_plan import Due


def unreduced(layout: Layout, schedule: Schedule) -> Iterator[Fault]:
    """The faults of one iteration."""
    made: dict[Due, list[Reduce]] = {due: [] for due in schedule.due}
    for op in schedule.ops:
        if isinstance(op, Reduce):
            if Due(op.level, op.reduction) not in made:
                yield Fault("reduction", f"Reduction: '{describe(op)}' is not due.", (op,))
            else:
                made[Due(op.level, op.reduction)].append(op)
    for due, ops in made.items():
        yield from _incomplete(layout, due, ops)


def _incomplete(layout: Layout, due: Due, ops: list[Reduce]) -> Iterator[Fault]:
    whole = next(one.box for one in layout.problem.reductions if one.name == due.reduction)
    for op in ops:
        if op.device >= layout.devices or not (layout.partition.owned(op.device) & whole).covers(op.box):
            yield Fault("reduction", f"Reduction: '{describe(op)}' leaves what its device owns of {whole}.", (op,))
    for one, two in combinations(ops, 2):
        if one.box.overlaps(two.box):
            yield Fault("reduction", f"Reduction: '{describe(one)}' and '{describe(two)}' share cells.", (one, two))
    if (cells := sum(op.box.size for op in ops)) != whole.size:
        message = f"Reduction: '{due.reduction}' at level {due.level} is made of {cells} of its {whole.size} cells."
        yield Fault("reduction", message, tuple(ops))
