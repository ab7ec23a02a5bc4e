"""Corrections: updates of later stages that a streaming kernel makes behind the usual ones, as absorbers at the ends of
rows: in one step, where no axis is periodic.

They read what the usual updates wrote at their own cell alone. Each cell of their layer has a thread of its own.
"""

from __future__ import annotations

from peergrid.codegen.cuda.blocked.interior import core_of
from peergrid.codegen.cuda.blocked.levels import in_most_cells, usual_updates
from peergrid.codegen.cuda.onestep.groups import Group, groups
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update
from peergrid.stencil.remember import remembered


@remembered()
def corrections(problem: Problem, steps: int) -> tuple[tuple[Update, ...], ...]:
    """For each stage with usual updates, the layers of later stages that a kernel of so many steps makes after them:
    those that are narrow along rows, of which kernels of one step would load and store a few cells of every row.
    """
    found: list[tuple[Update, ...]] = [()] * len(problem.stages)
    usual, base = usual_updates(problem), -1
    for group in groups(problem) if steps == 1 and not any(problem.grid.periodic) else ():
        for number in group.stages:
            if usual[number]:
                base = number
            elif base in group.stages:
                for update in problem.stages[number].updates:
                    fits = _corrects(problem, group, base, number, update)
                    if fits and not any(_both_change(update, other) for other in found[base]):
                        found[base] += (update,)
    return tuple(found)


def _corrects(problem: Problem, group: Group, base: int, number: int, update: Update) -> bool:
    """True if an update of a later stage is in a layer that is narrow along rows and reads what the usual ones have."""
    if not _narrow(problem, update) or update.signals:
        return False
    assigned = usual_updates(problem)[base]
    changed = [name for name in update.targets if name in assigned]
    if len(changed) != 1 or not assigned[changed[0]][0].box.covers(update.box):
        return False  # threads correct one field each, and read no other that is being corrected
    others = (name for name in update.targets if name not in changed)
    made = all(of_layer(problem, name) and alone(problem, name, number) for name in others)
    return made and _finds_all(problem, group, base, number, update)


def _narrow(problem: Problem, update: Update) -> bool:
    """True if the layer of an update is narrow along rows alone, and lies at an end of them."""
    wide = [2 * a > b for a, b in zip(update.box.shape, problem.grid.shape, strict=True)]
    return wide == [True, True, False] and not core_of(problem.grid.box, [update.box])[1]


def _finds_all(problem: Problem, group: Group, base: int, number: int, update: Update) -> bool:
    """True if what an update reads is what it changes, in the rings of the usual updates, in a profile, or its own."""
    assigned = usual_updates(problem)[base]
    written = {name for stage in group.stages for name in problem.stages[stage].targets}
    changed = {*update.targets} & {*assigned}
    usual = [read for _, assignment in assigned.values() for read in assignment.reads]
    for read in update.reads:
        if not problem.fields[read.field].full:
            continue
        if of_layer(problem, read.field):
            found = _finds_own(problem, number, read)
        elif read.field in written:
            found = read.field in changed
        else:
            found = _in_ring(read, usual)
        if not found:
            return False
    return True


def _finds_own(problem: Problem, number: int, read: Read) -> bool:
    """True if a read of a field of the layer alone is of the cell itself, which no other stage changes."""
    state = read.field in problem.state
    return not any(read.offset) and (not state or alone(problem, read.field, number))


def _in_ring(read: Read, usual: list[Read]) -> bool:
    """True if the plane of a read is among those that the usual updates read."""
    planes = [other.offset[0] for other in usual if other.field == read.field]
    return bool(planes) and min(planes) <= read.offset[0] <= max(planes)


def _both_change(one: Update, other: Update) -> bool:
    """True if two updates write the same field of a cell."""
    return one.box.overlaps(other.box) and not set(one.targets).isdisjoint(other.targets)


def of_layer(problem: Problem, name: str) -> bool:
    """True if a field exists on the smaller part of the grid."""
    field = problem.fields[name]
    return field.full and not in_most_cells(problem, field.box)


def alone(problem: Problem, name: str, number: int) -> bool:
    """True if nothing but one stage reads and writes a field, each cell for itself."""
    for place, stage in enumerate(problem.stages):
        for update in stage.updates:
            reads = [read for read in update.reads if read.field == name]
            if any(any(read.offset) for read in reads) or (place != number and (reads or name in update.targets)):
                return False
    return True
