"""Waves of two time levels in place: in passes of one step a field that rotates has no memory of its own.

It lies in the other slot of the field that it follows (see `stencil.rotating.rotating_fields`): the new value of a cell
replaces the one before the last, which the same thread has read. So no kernel makes a cell twice. Cells of sources and
of receivers, which kernels that stream leave to others, are not made anew behind these: what comes before the usual
updates reads fields as they were, what comes after them goes on from their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from peergrid.codegen.cuda.blocked.levels import usual_updates
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.cuda.stream3d.corrections import corrections
from peergrid.grid import Box
from peergrid.grid.box import disjoint
from peergrid.stencil import Growth, Problem, Stage, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment, Update
from peergrid.stencil.remember import remembered
from peergrid.stencil.rotating import rotating_fields


@dataclass(frozen=True, eq=False)
class Rotation:
    """The problems that kernels solve for one with rotating fields, each of which is in the other slot of another
    field.

    fields: those, with the fields that they follow; step: all but their copies; early, late: the stages before and
    behind the usual updates, the latter without corrections, on what these left in the slot that is written, where the
    rotating fields are.

    The early stages read what the usual updates do not write, so both may run at the same time. Receivers are served by
    the early problem if all of them are in fields that it writes, else by the late one.

    passed: the fields that early stages leave for late ones, which find them in the slot that is written.
    """

    fields: Mapping[str, str]
    step: Problem
    early: Problem | None
    late: Problem
    passed: tuple[str, ...] = ()

    def late_parts(self, boxes: Sequence[Box]) -> tuple[Box, ...]:
        """The cells of disjoint boxes that late stages change, and those of receivers that are served late, as disjoint
        boxes.
        """
        grid, (_, *stages) = self.late.grid, self.late.stages
        changed = [update.box for stage in stages for update in stage.updates]
        changed += [Box.cell(receiver.cell) for receiver in self.late.receivers]
        return disjoint(image for box in boxes for one in changed for image in grid.images(one, box))


def rotation_of(problem: Problem, blocks: tuple[int, ...]) -> Rotation | None:
    """The rotation in passes of so many steps; None where fields have memory of their own."""
    return rotation(problem) if blocks == (1,) else None


@remembered()
def rotation(problem: Problem) -> Rotation | None:
    """The rotation in passes of one step over a 3D grid, if kernels can work in place."""
    fields, usual = rotating_fields(problem), [n for n, assigned in enumerate(usual_updates(problem)) if assigned]
    if problem.grid.ndim < 3 or not fields or not usual or scratch_fields(problem):
        return None
    early = [stage for n, stage in enumerate(problem.stages[: usual[-1]]) if n not in usual]
    late, main = problem.stages[usual[-1] + 1 :], problem.stages[usual[-1]]
    alone = all(len(problem.stages[number].updates) == 1 for number in usual)
    recorded = any(receiver.field in fields for receiver in problem.receivers)
    if not alone or recorded or not set(fields) <= set(main.targets) or not _made_once(problem, usual[-1], fields):
        return None
    passed = _passed(problem, early, late)
    if passed is None or not _before(problem, early, late) or not _behind(late, problem, {*fields.values()}, passed):
        return None
    (update,) = main.updates
    kept = tuple(one for one in update.assignments if one.target not in fields)
    stages = tuple(Stage((replace(update, assignments=kept),)) if one is main else one for one in problem.stages)
    step = replace(problem, stages=stages)
    corrected = tuple(chain.from_iterable(corrections(step, 1)))
    if _change_before(late, corrected):
        return None
    late = tuple(Stage(left) for stage in late if (left := tuple(one for one in stage.updates if one not in corrected)))
    early_fields = {name for stage in early for name in stage.targets}
    heard_early = all(receiver.field in early_fields for receiver in problem.receivers)
    here = (0,) * problem.grid.ndim
    made = tuple(Assignment(followed, Read(name, here)) for name, followed in fields.items())
    results = Stage((Update("results", update.box, made, ()),))
    return Rotation(
        fields,
        step,
        replace(problem, stages=tuple(early), receivers=problem.receivers if heard_early else ()) if early else None,
        replace(problem, stages=(results, *late), receivers=() if heard_early else problem.receivers),
        passed,
    )


def _made_once(problem: Problem, number: int, fields: Mapping[str, str]) -> bool:
    """True if nothing reads beyond a cell what the stage leaves there: none is made by two devices or regions."""
    needs, none = footprint(problem, 1).targets[0][number], Growth.none(problem.grid.ndim)
    return all(needs[followed] == none for followed in fields.values())


def _passed(problem: Problem, early: Sequence[Stage], late: Sequence[Stage]) -> tuple[str, ...] | None:
    """The fields that late stages read and early ones write; None where these do not write as far as those read."""
    reads = [read for stage in late for read in stage.reads]
    made = tuple(name for stage in early for name in stage.targets if any(read.field == name for read in reads))
    if not made:
        return ()
    needs, none = footprint(replace(problem, stages=tuple(early)), 1).targets[0], Growth.none(problem.grid.ndim)
    for name in made:
        known = next(need[name] for need in reversed(needs) if name in need)
        if not all(none.through(read.offset, problem.grid).within(known) for read in reads if read.field == name):
            return None
    return tuple(dict.fromkeys(made))


def _before(problem: Problem, early: Sequence[Stage], late: Sequence[Stage]) -> bool:
    """True if stages find fields as the step found them, and nothing but these writes what they write or, but for late
    stages, reads it.
    """
    mine = {name for stage in early for name in stage.targets}
    known: set[str] = set()
    for stage in problem.stages:
        if stage in early and not known.isdisjoint(stage.readers):
            return False
        if stage not in early:
            known |= set(stage.targets)
            if not mine.isdisjoint((*(() if stage in late else stage.readers), *stage.targets)):
                return False
    return True


def _behind(late: Sequence[Stage], problem: Problem, followed: set[str], passed: Sequence[str]) -> bool:
    """True if stages change nothing but the fields that are followed, each cell by itself, by what never changes and by
    what early stages leave.
    """
    reads = {read for stage in late for read in stage.reads}
    changing = {read for read in reads if read.field in problem.state and read.field not in passed}
    own = all(read.field in followed and not any(read.offset) for read in changing)
    return own and all(set(stage.targets) <= followed for stage in late)


def _change_before(late: Sequence[Stage], corrected: Sequence[Update]) -> bool:
    """True if another late update changes a cell before a correction, which a stream makes, does."""
    changed: list[Box] = []
    for stage in late:
        if any(one.box.overlaps(box) for one in stage.updates if one in corrected for box in changed):
            return True
        changed += [one.box for one in stage.updates if one not in corrected]
    return False
