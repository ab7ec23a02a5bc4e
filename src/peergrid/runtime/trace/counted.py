"""The check that each cell is counted once in each due reduction of a schedule, and never in others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.grid import Box
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import Reduce


def miscounted(layout: Layout, schedule: Schedule) -> Iterator[Fault]:
    """The reductions in which a cell is left out, counted twice, or counted where nothing is due."""
    boxes = {one.name: one.box for one in layout.problem.reductions}
    due = {(due.level, due.reduction) for due in schedule.due}
    made: dict[tuple[int, str], list[Box]] = {key: [] for key in due}
    for op in schedule.ops:
        if isinstance(op, Reduce):
            made.setdefault((op.level, op.reduction), []).append(op.box)
    for (level, name), found in made.items():
        wanted = boxes[name] if (level, name) in due else None
        if not _each_once(wanted, found):
            text = f"Reduction: '{name}' at level {level} counts cells of {wanted} other than once each."
            yield Fault("reduction", text, ())


def _each_once(wanted: Box | None, found: list[Box]) -> bool:
    """True if the boxes found hold every cell of the one wanted once, and no other."""
    every = [*found, *([] if wanted is None else [wanted])]
    lines = [np.unique([edge for box in every for edge in (box.lo[a], box.hi[a])]) for a in range(every[0].ndim)]
    counts = np.zeros([len(line) - 1 for line in lines], dtype=np.int64)
    for box, number in [*((box, 1) for box in found), *([] if wanted is None else [(wanted, -1)])]:
        spans = (slice(*np.searchsorted(line, ends)) for line, *ends in zip(lines, box.lo, box.hi, strict=True))
        counts[tuple(spans)] += number
    return not counts.any()
