"""The places of interior tiles: every cell that their steps compute has one and the same update there.

A box without the layers along its sides is its *core*. Rows of the core's tiles that a source or the like touches are
excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from peergrid.codegen.cuda.blocked.levels import in_most_cells, usual_fields, usual_updates
from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.stencil import Growth, Problem, footprint
from peergrid.stencil.footprint import Need
from peergrid.stencil.problem import Update
from peergrid.stencil.remember import remembered


def allowed(problem: Problem, steps: int, box: Box, margin: int | None = None) -> Box:
    """The cells of interior tiles: inside the usual updates, and where all that these load exists.

    margin: columns that they load on both sides, if they are not those that the steps need.
    """
    allowed = interior_box(problem, steps)
    inputs = footprint(problem, steps).inputs
    for name, growth in inputs.items():
        known = problem.grid.clip(growth.apply(box)) & unbounded(problem, problem.fields[name].box)
        if problem.fields[name].full and name in usual_fields(problem):
            loaded = growth if margin is None else Growth((growth.below[0], margin), (growth.above[0], margin))
            allowed &= shrunk(known, loaded)
    return allowed


@remembered()
def interior_box(problem: Problem, steps: int) -> Box:
    """The cells for which every step computes nothing but what lies inside the usual updates."""
    assigned = usual_updates(problem)
    allowed = Box((-FAR,) * problem.grid.ndim, (FAR,) * problem.grid.ndim)
    for (stage, target), update, growth in grown(problem, steps):
        if update is assigned[stage].get(target, (None,))[0]:
            allowed &= shrunk(unbounded(problem, update.box), growth)
    return allowed


@remembered()
def obstacles(problem: Problem, steps: int, besides: tuple[Update, ...] = ()) -> tuple[Box, ...]:
    """Boxes where no interior tile may be: close to the box of any other update, or on a field that exists there alone.

    besides: updates that do not count, nor do fields that nothing else writes.
    """
    assigned, found = usual_updates(problem), list[Box]()
    for (stage, target), update, growth in grown(problem, steps):
        if update is not assigned[stage].get(target, (None,))[0] and update not in besides:
            found += reached(problem, steps, stage, target, update.box, growth)
    for name in problem.state if not _one_step_in_3d(problem, steps) else ():
        writers = (update for stage in problem.stages for update, _ in stage.writers(name))
        box = problem.fields[name].box
        if not in_most_cells(problem, box) and any(update not in besides for update in writers):
            found.append(box)
    return tuple(found)


def reached(problem: Problem, steps: int, stage: int, target: str, box: Box, growth: Growth) -> Iterator[Box]:
    """The cells that interior tiles would make wrongly where another update writes a target; growth: as of `grown`.

    A step of a 3D grid has what no update writes in all blocks from the start: there these are the cells of the update,
    and those that usual updates make of them.
    """
    yield from computing(
        problem, box, _passed_on(problem)[stage][target] if _one_step_in_3d(problem, steps) else growth
    )


def _one_step_in_3d(problem: Problem, steps: int) -> bool:
    return problem.grid.ndim == 3 and steps == 1


@remembered()
def _passed_on(problem: Problem) -> tuple[Need, ...]:
    """For each stage the cells of its targets beyond a box that usual updates read later in a step, at once or by what
    is made of them.
    """
    nothing = Growth.none(problem.grid.ndim)
    need: dict[str, Growth] = dict.fromkeys(problem.state, nothing)
    found: list[Need] = []
    for stage, assigned in zip(reversed(problem.stages), reversed(usual_updates(problem)), strict=True):
        found.append({target: need[target] for target in stage.targets})
        before = dict(need)
        for target, (_, assignment) in assigned.items():
            for read in assignment.reads:
                if read.field in before:
                    before[read.field] |= need[target] + nothing.through(read.offset, problem.grid)
        need = before
    return tuple(reversed(found))


def computing(problem: Problem, box: Box, growth: Growth) -> Iterator[Box]:
    """The cells whose steps, which compute so far beyond them, compute some cell of the box."""
    window = Box(tuple(-n for n in problem.grid.shape), tuple(2 * n for n in problem.grid.shape))
    for image in problem.grid.images(box, window):
        yield image.grow(growth.above, growth.below)


@remembered()
def grown(problem: Problem, steps: int) -> tuple[tuple[tuple[int, str], Update, Growth], ...]:
    """Every update of every target, and how far beyond a tile its steps compute that target."""
    needs, found = footprint(problem, steps).targets, list[tuple[tuple[int, str], Update, Growth]]()
    for number, stage in enumerate(problem.stages):
        for target in stage.targets:
            growth = reduce(Growth.__or__, (need[number][target] for need in needs))
            for update, _ in stage.writers(target):
                if not update.box.empty:
                    found.append(((number, target), update, growth))
    return tuple(found)


def unbounded(problem: Problem, box: Box) -> Box:
    """The box, without bounds along periodic axes that it spans."""
    for axis, wraps in enumerate(problem.grid.periodic):
        if wraps and box.shape[axis] == problem.grid.shape[axis]:
            box = box.with_axis(axis, -FAR, FAR)
    return box


def shrunk(box: Box, growth: Growth) -> Box:
    """The cells of a box whose needs lie in it."""
    lo = tuple(a + g for a, g in zip(box.lo, growth.below, strict=True))
    hi = tuple(b - g for b, g in zip(box.hi, growth.above, strict=True))
    return Box(lo, hi)


def core_of(box: Box, excluded: list[Box]) -> tuple[Box, list[Box]]:
    """The box without the layers along its sides, and the boxes inside it that no tile may touch."""
    points = []
    for bar in sorted(excluded, key=lambda b: -b.size):
        hit = box & bar
        if hit.empty:
            continue
        best = min(_cuts(box, bar), key=lambda rest: box.size - rest.size)
        if box.size - best.size <= 3 * hit.size:
            box = best
        else:
            points.append(bar)
    return box, points


def _cuts(box: Box, bar: Box) -> Iterator[Box]:
    """The rests of the box when a slab with the bar in it is cut off one of its sides."""
    for axis in range(box.ndim):
        yield box.with_axis(axis, min(bar.hi[axis], box.hi[axis]), box.hi[axis])
        yield box.with_axis(axis, box.lo[axis], max(bar.lo[axis], box.lo[axis]))
