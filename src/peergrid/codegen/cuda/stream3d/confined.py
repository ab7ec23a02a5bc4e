"""Confined updates that a streaming kernel makes itself, such as absorbers: in one step, where no axis is periodic.

They read the rings that the usual updates read. Fields of their own, the memory of an absorber, have each cell read and
written by itself alone: in memory, by the thread that makes the cell.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.cuda.blocked.interior import FAR, core_of
from peergrid.codegen.cuda.blocked.levels import usual_updates
from peergrid.grid import Box
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment, Update
from peergrid.stencil.remember import remembered


@remembered()
def confined_updates(problem: Problem, steps: int) -> tuple[tuple[Update, ...], ...]:
    """For each stage, the updates beside the usual ones that a kernel of so many steps makes: all or none."""
    none = ((),) * len(problem.stages)
    if steps > 1 or any(problem.grid.periodic):
        return none
    found = tuple(tuple(_confined(problem, number)) for number in range(len(problem.stages)))
    able = (_able(problem, number, updates) for number, updates in enumerate(found))
    return found if any(found) and all(able) else none


def own_fields(problem: Problem, update: Update) -> tuple[str, ...]:
    """The fields of an update that exist on a part of the grid."""
    named = dict.fromkeys((*update.targets, *sorted(read.field for read in update.reads)))
    return tuple(name for name in named if own(problem, name))


def whole_box(problem: Problem, steps: int, stage: int, target: str) -> Box:
    """The box in which a kernel's updates of a stage write a target."""
    box = usual_updates(problem)[stage][target][0].box
    for update in confined_updates(problem, steps)[stage]:
        box = box.hull(update.box) if target in update.targets else box
    return box


def usual_box(problem: Problem, stage: int) -> Box:
    """Cells of which none has a confined update; without bounds where there are none."""
    grid, found = problem.grid.box, Box((-FAR,) * 3, (FAR,) * 3)
    core, _ = core_of(grid, [update.box for update in confined_updates(problem, 1)[stage]])
    for axis in range(3):
        lo, hi = core.lo[axis], core.hi[axis]
        found = found.with_axis(axis, lo or -FAR, hi if hi < grid.hi[axis] else FAR)
    return found


def readable(
    problem: Problem, number: int, read: Read, seen: set[Read], assigned: dict[str, tuple[Update, Assignment]]
) -> bool:
    """True if what a confined update reads is in the rings of the usual ones, in a profile, or in its own field."""
    described = problem.fields[read.field]
    if not described.full:
        return True
    if own(problem, read.field):
        state = read.field in problem.state
        return not any(read.offset) and (not state or alone(problem, read.field, number))
    planes = [other.offset[0] for other in seen if other.field == read.field]
    planes += [0] if read.field in assigned else []
    return bool(planes) and min(planes) <= read.offset[0] <= max(planes)


def own(problem: Problem, name: str) -> bool:
    """True if a field exists on the smaller part of the grid."""
    field = problem.fields[name]
    return field.full and field.box.size <= problem.grid.box.size / 2


def alone(problem: Problem, name: str, number: int) -> bool:
    """True if nothing but one stage reads and writes a field, each cell for itself."""
    for place, stage in enumerate(problem.stages):
        for update in stage.updates:
            reads = [read for read in update.reads if read.field == name]
            if any(any(read.offset) for read in reads) or (place != number and (reads or name in update.targets)):
                return False
    return True


def _confined(problem: Problem, number: int) -> Iterator[Update]:
    """The updates of a stage with usual ones that are not among these."""
    assigned = usual_updates(problem)[number]
    usual = {id(update) for update, _ in assigned.values()}
    yield from (update for update in problem.stages[number].updates if assigned and id(update) not in usual)


def _able(problem: Problem, number: int, updates: tuple[Update, ...]) -> bool:
    """True if a kernel can make the updates of a stage in place of the usual ones."""
    assigned = usual_updates(problem)[number]
    seen = {read for _, assignment in assigned.values() for read in assignment.reads}
    for update in updates:
        others = {name for name in update.targets if name not in assigned}
        if any(signal.slopes for signal in update.signals):
            return False
        if not all(own(problem, name) and alone(problem, name, number) for name in others):
            return False
        if not all(readable(problem, number, read, seen, assigned) for read in update.reads):
            return False
    if core_of(problem.grid.box, [update.box for update in updates])[1]:
        return False
    return all(_covered(problem, number, target) for target in assigned)


def _covered(problem: Problem, number: int, target: str) -> bool:
    """True if the boxes of all updates of a target are one box together."""
    boxes = [update.box for update, _ in problem.stages[number].writers(target)]
    whole = boxes[0]
    for box in boxes:
        whole = whole.hull(box)
    return whole.size == sum(box.size for box in boxes)
