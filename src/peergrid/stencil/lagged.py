"""Fields that need not be copied or kept: those with the values of another field one step earlier, and those used
within one step.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peergrid.grid import Box, Field
from peergrid.grid.box import subtract
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Problem, Stage, Update
from peergrid.stencil.reduction import PREVIOUS
from peergrid.stencil.remember import remembered


@remembered()
def lagged_fields(problem: Problem) -> Mapping[str, str]:
    """The lagged fields, each with the field that it follows.

    After every step a lagged field equals, on every cell, the other one as it was when the step's stage read it. So a
    kernel may keep the other's old values under the new name instead of copying them.
    """
    found: dict[str, str] = {}
    for stage in problem.stages:
        for update in stage.updates:
            for assignment in update.assignments:
                name, read = assignment.target, assignment.value
                if (
                    isinstance(read, Read)
                    and not any(read.offset)
                    and _follows(problem, stage, update, name, read.field)
                ):
                    found[name] = read.field
    return {name: followed for name, followed in found.items() if followed not in found}


@remembered()
def passing_fields(problem: Problem) -> frozenset[str]:
    """The fields whose values no later step needs, such as derivatives that a stage stores for the next one.

    One stage alone writes them, and nothing reads them before in a step. Cells without an update never change.
    """
    reduced = {one.source(alias)[0] for one in problem.reductions for alias in one.described}
    found: set[str] = set()
    for name in set(problem.state) - reduced:
        numbers = [number for number, stage in enumerate(problem.stages) if name in stage.targets]
        before = problem.stages[: numbers[0] + 1] if len(numbers) == 1 else problem.stages
        read_before = any(name in stage.readers for stage in before)
        if len(numbers) == 1 and not read_before:
            found.add(name)
    return frozenset(found)


def kept_value(problem: Problem, name: str) -> float | None:
    """The first value of a field if it is the same number everywhere: cells without an update keep it."""
    init = problem.fields[name].init
    return float(init) if problem.fields[name].made_by is None and init.shape == () else None


def without_update(problem: Problem, name: str) -> tuple[Box, ...]:
    """The cells of a field that no update writes."""
    written = (update.box for stage in problem.stages for update, _ in stage.writers(name))
    return subtract((problem.fields[name].box,), *written)


def kept_cells(problem: Problem, name: str) -> tuple[Box, ...]:
    """The cells of a field that no update writes, if their values stand for those of another field there: it is a
    lagged field, or one such as `u.prev` that a reduction reads as the value before the step, or followed by one.
    """
    read = {alias for one in problem.reductions for alias in one.described.keys() - one.previous}
    followed = {alias: alias.removesuffix(PREVIOUS) for alias in read if alias.endswith(PREVIOUS)}
    pairs = {**followed, **lagged_fields(problem)}
    return without_update(problem, name) if name in {*pairs, *pairs.values()} else ()


def _follows(problem: Problem, stage: Stage, update: Update, name: str, followed: str) -> bool:
    """True if a field that an update copies from another always equals that other field one stage earlier."""
    writers = [one for s in problem.stages for one, _ in s.writers(name)]
    others = [one for s in problem.stages for one, _ in s.writers(followed)]
    kept, moved = problem.fields[name], problem.fields[followed]
    return (
        len(writers) == 1
        and followed in update.targets
        and kept.full
        and moved.full
        and kept.box == moved.box
        and len(stage.writers(followed)) == 1
        and all(update.box.covers(one.box) for one in others)
        and all(_same(kept, moved, box) for box in subtract((kept.box,), update.box))
    )


def _same(one: Field, two: Field, box: Box) -> bool:
    """True if two fields have the same first values on a box, bit for bit."""
    alike = one.init is two.init and one.made_by is two.made_by
    return alike or _bits(one, box) == _bits(two, box)


def _bits(field: Field, box: Box) -> bytes:
    return np.ascontiguousarray(field.values(box)).tobytes()
