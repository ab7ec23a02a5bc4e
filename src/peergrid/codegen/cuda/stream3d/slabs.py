"""Slabs of a grid whose fields have different updates, as radar has in air and in soil with poles.

Each slab is a problem of its own, in which its updates apply everywhere: kernels of that problem make its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from types import MappingProxyType

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.grid import Box, Field
from peergrid.stencil import Growth, Problem, Stage, Update, footprint
from peergrid.stencil.remember import remembered

LARGE = 1 / 32  # of the grid, from which on an update is not one of few cells
MOST = 4  # slabs


@remembered()
def slabs(problem: Problem) -> tuple[tuple[Box, Problem], ...]:
    """The slabs of a grid, each with the problem of its updates; none where one update of each field is enough, or
    where updates differ otherwise than from slab to slab along one axis. Along periodic axes slabs have no bounds.
    """
    differing = _differing(problem)
    for axis in range(problem.grid.ndim if differing else 0):
        boxes = [sorted((one.box for one in updates), key=lambda box: box.lo[axis]) for updates in differing.values()]
        if not problem.grid.periodic[axis] and all(_follow(axis, found) for found in boxes):
            cuts = sorted({box.lo[axis] for found in boxes for box in found[1:]})
            spans = tuple(pairwise((0, *cuts, problem.grid.shape[axis])))
            made = tuple(_Slab(problem, axis, problem.grid.box.with_axis(axis, *span), differing) for span in spans)
            found = tuple((unbounded(problem, slab.box), slab.problem) for slab in made)
            return found if len(found) <= MOST and all(_alike(problem, one, differing) for _, one in found) else ()
    return ()


Differing = Mapping[tuple[int, str], tuple[Update, ...]]
"""The updates of many cells each, of the stages and fields that have several in most of the grid together."""


def _differing(problem: Problem) -> Differing:
    least = LARGE * problem.grid.box.size
    found = {
        (number, target): tuple(update for update, _ in stage.writers(target) if update.box.size >= least)
        for number, stage in enumerate(problem.stages)
        for target in stage.targets
    }
    half = problem.grid.box.size / 2
    return {key: them for key, them in found.items() if len(them) > 1 and sum(one.box.size for one in them) > half}


def _follow(axis: int, boxes: list[Box]) -> bool:
    """True if boxes lie one after another along an axis, without cells between them."""
    return all(
        one.hi[axis] == two.lo[axis] and one == two.with_axis(axis, one.lo[axis], one.hi[axis])
        for one, two in pairwise(boxes)
    )


def _alike(problem: Problem, made: Problem, differing: Differing) -> bool:
    """True if a slab's problem makes cells of its slab alone by its own updates, and leaves what is between stages in
    the same blocks of memory.
    """
    needs = footprint(made, 1).targets[0]
    reached = reduce(Growth.__or__, (needs[stage][name] for stage, name in differing if name in needs[stage]))
    ours, theirs = groups(made), groups(problem)
    same = [one.stages for one in ours] == [one.stages for one in theirs] and all(
        one.before[name] == other.before[name] and one.after[name] == other.after[name]
        for one, other in zip(ours, theirs, strict=True)
        for name in one.before
    )
    return same and not any((*reached.below, *reached.above))


@dataclass(frozen=True)
class _Slab:
    """A slab of a grid along an axis, and the updates of the problem that differ from slab to slab."""

    whole: Problem
    axis: int
    box: Box
    differing: Differing

    @property
    def problem(self) -> Problem:
        """The problem whose updates are everywhere those of the slab."""
        stages = tuple(Stage(tuple(self._updates(number))) for number in range(len(self.whole.stages)))
        fields = {name: self._wide(field, stages) for name, field in self.whole.fields.items()}
        return replace(self.whole, fields=MappingProxyType(fields), stages=stages, reductions=())

    def _updates(self, number: int) -> Iterator[Update]:
        for update in self.whole.stages[number].updates:
            found = [self.differing[number, name] for name in update.targets if (number, name) in self.differing]
            if not found:
                yield update
            elif update.box.overlaps(self.box):
                large = any(update in updates for updates in found)
                everywhere = reduce(Box.hull, (one.box for updates in found for one in updates))
                yield replace(update, box=everywhere if large else update.box & self.box)

    def _wide(self, field: Field, stages: tuple[Stage, ...]) -> Field:
        """A field with all cells that updates read and write, which no kernel asks for outside the slab."""
        updates = (update for stage in stages for update in stage.updates)
        users = (one for one in updates if field.name in {*one.targets, *(read.field for read in one.reads)})
        boxes = [field.box, *(update.box for update in users)]
        lo, hi = min(box.lo[self.axis] for box in boxes), max(box.hi[self.axis] for box in boxes)
        return replace(field, box=field.box.with_axis(self.axis, lo, hi)) if field.full else field
