"""The footprint of a result: the cells of each field that are needed to advance a box by some steps.

The method is plain backward propagation of offsets, stage by stage; it gives ghost widths (B+2R is its special case
for one field and one stage), the shrinking boxes of temporal blocking, and the reads of every compute operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, le

from peergrid.grid import Box, Grid, Index
from peergrid.grid.box import disjoint, subtract
from peergrid.stencil.lagged import without_update
from peergrid.stencil.problem import Problem, Stage
from peergrid.stencil.reduction import Reduction
from peergrid.stencil.remember import remembered

FAR = 1 << 40  # cells: beyond any grid


@dataclass(frozen=True, slots=True)
class Growth:
    """The number of cells by which a box grows towards smaller (`below`) and larger (`above`) indices, axis by axis."""

    below: Index
    above: Index

    @classmethod
    def none(cls, ndim: int) -> Growth:
        return cls((0,) * ndim, (0,) * ndim)

    def __or__(self, other: Growth) -> Growth:
        """The larger growth on every side."""
        return Growth(tuple(map(max, self.below, other.below)), tuple(map(max, self.above, other.above)))

    def within(self, other: Growth) -> bool:
        """True if the other one is at least as large on every side."""
        return all(map(le, self.below, other.below)) and all(map(le, self.above, other.above))

    def through(self, offset: Index, grid: Grid) -> Growth:
        """The growth that includes a read at `offset` from every cell; in both directions at reflecting edges."""
        below, above = [], []
        for axis, o in enumerate(offset):
            both = grid.boundary[axis] == "reflecting"
            below.append(self.below[axis] + max(-o, abs(o) if both else 0))
            above.append(self.above[axis] + max(o, abs(o) if both else 0))
        return Growth(
            tuple(max(g, s) for g, s in zip(below, self.below, strict=True)),
            tuple(max(g, s) for g, s in zip(above, self.above, strict=True)),
        )

    def __add__(self, other: Growth) -> Growth:
        """Grown by one and then by the other."""
        return Growth(tuple(map(add, self.below, other.below)), tuple(map(add, self.above, other.above)))

    def apply(self, box: Box) -> Box:
        return box.grow(self.below, self.above)


Need = Mapping[str, Growth]
Reads = Mapping[tuple[str, str], Growth]


@dataclass(frozen=True)
class Footprint:
    """The cells that are needed to advance every state field on a box by `steps` steps.

    inputs: for each field (state and coefficient), how far beyond the box its values are needed at the start;
    targets[t][s][f]: how far beyond the box stage `s` of step `t` (both from 0) must compute field `f`.
    """

    inputs: Need
    targets: tuple[tuple[Need, ...], ...]


@remembered(256)
def footprint(problem: Problem, steps: int) -> Footprint:
    """The footprint of `steps` whole steps; steps = 0 needs the box itself."""
    nothing = Growth.none(problem.grid.ndim)
    need: dict[str, Growth] = dict.fromkeys(problem.state, nothing)
    fixed: dict[str, Growth] = {}
    computed: list[tuple[Need, ...]] = []
    for _ in range(steps):
        stages: list[Need] = []
        for stage, reads in zip(reversed(problem.stages), reversed(_reads(problem)), strict=True):
            stages.append({target: need[target] for target in stage.targets})
            need = _before(reads, need, fixed)
        computed.append(tuple(reversed(stages)))
    return Footprint({**fixed, **need}, tuple(reversed(computed)))


def boundary_depth(problem: Problem, steps: int) -> int:
    """The rows at an end of a slab that a neighbour needs, or from which ghost cells are read, in passes of so many
    steps.
    """
    inputs = footprint(problem, steps).inputs
    return max(max(inputs[name].below[0], inputs[name].above[0]) for name in problem.state)


@remembered()
def _reads(problem: Problem) -> tuple[Reads, ...]:
    """The extent of each stage in each field for each of its targets, over all updates."""
    return tuple(_reads_of(problem, stage) for stage in problem.stages)


def _reads_of(problem: Problem, stage: Stage) -> Reads:
    found, nothing = dict[tuple[str, str], Growth](), Growth.none(problem.grid.ndim)
    for target in stage.targets:
        for _, assignment in stage.writers(target):
            for read in assignment.reads:
                known = found.get((target, read.field), nothing)
                found[target, read.field] = known | nothing.through(read.offset, problem.grid)
    return found


def _before(reads: Reads, need: Need, fixed: dict[str, Growth]) -> dict[str, Growth]:
    """The cells that must be known before a stage so that `need` holds after it; coefficients gather in `fixed`."""
    before = dict(need)
    for (target, field), growth in reads.items():
        reach, pool = need[target] + growth, before if field in before else fixed
        pool[field] = pool[field] | reach if field in pool else reach
    return before


def read_box(problem: Problem, name: str, box: Box, steps: int) -> Box:
    """The cells of a field that are read to advance `box` by `steps` steps (empty if none)."""
    inputs = footprint(problem, steps).inputs
    described = problem.fields[name]
    if name not in inputs:
        return Box(box.lo, box.lo)
    return problem.grid.clip(inputs[name].apply(box)) & _reach(problem, described.box)


def read_boxes(problem: Problem, name: str, box: Box, steps: int) -> tuple[Box, ...]:
    """The same as disjoint boxes without unneeded cells: those of one step lack the corners that a star stencil does
    not read, and those of a field that is written before it is read have only the cells that no update writes, whose
    values are kept.
    """
    if steps and name in renewed_fields(problem):
        kept = (
            one & box for part in without_update(problem, name) for one, _ in problem.grid.shifted_images(part, box)
        )
        return tuple(part for part in kept if not part.empty)
    whole = read_box(problem, name, box, steps)
    if steps != 1 or name not in problem.state:
        return () if whole.empty else (whole,)
    found = disjoint(problem.grid.clip(growth.apply(box)) & whole for growth in arms(problem)[name])
    return (whole,) if sum(piece.size for piece in found) == whole.size else found


@remembered()
def renewed_fields(problem: Problem) -> frozenset[str]:
    """The fields of which a step reads only cells that one of its earlier stages has written."""
    return frozenset(name for name in problem.state if _renewed(problem, name))


def _renewed(problem: Problem, name: str) -> bool:
    number = next((n for n, stage in enumerate(problem.stages) if name in stage.targets), 0)
    reading = [
        (n, update.box.shift(read.offset))
        for n, stage in enumerate(problem.stages)
        for update in stage.readers.get(name, ())
        for read in update.reads
        if read.field == name
    ]
    written = (_endless(problem.grid, update.box) for update, _ in problem.stages[number].writers(name))
    seen = tuple(part for _, box in reading for part in problem.grid.folded(box))
    return all(n > number for n, _ in reading) and not subtract(seen, *written)


@remembered()
def arms(problem: Problem) -> Mapping[str, tuple[Growth, ...]]:
    """The extent of one step beyond a box in each state field: growths whose boxes together contain all reads.

    Kernels make the values that later stages read beside a box on a box, too, and may store them after those that
    neighbours have sent: of a field whose corners are sent, its corners are made of what is known.
    """
    boxed = frozenset[str]()
    while True:
        found = _arms(problem, boxed)
        sent = frozenset(name for name, growths in found.items() if any(map(_has_corners, growths)))
        if sent <= boxed:
            return found
        boxed |= sent


def _arms(problem: Problem, boxed: frozenset[str]) -> Mapping[str, tuple[Growth, ...]]:
    """The same if some fields are made on boxes, the others in the cells alone that are read."""
    need = {name: frozenset({Growth.none(problem.grid.ndim)}) for name in problem.state}
    for stage in reversed(problem.stages):
        before = dict(need)
        for target in stage.targets:
            made = frozenset({reduce(Growth.__or__, need[target])}) if target in boxed else need[target]
            for _, assignment in stage.writers(target):
                for read in assignment.reads:
                    if read.field in before:
                        before[read.field] |= {growth.through(read.offset, problem.grid) for growth in made}
        need = {name: frozenset(_largest(growths)) for name, growths in before.items()}  # else stages multiply them
    return {name: tuple(_largest(growths)) for name, growths in need.items()}


def _has_corners(growth: Growth) -> bool:
    """True for a growth along several axes."""
    return sum(below + above > 0 for below, above in zip(growth.below, growth.above, strict=True)) > 1


def _largest(growths: frozenset[Growth]) -> list[Growth]:
    """The growths that no other one contains, in a fixed order."""
    largest: list[Growth] = []
    for one in sorted(growths, key=lambda growth: -sum(growth.below) - sum(growth.above)):
        if not any(one.within(two) for two in largest):
            largest.append(one)
    return sorted(largest, key=lambda growth: (growth.below, growth.above))


@remembered(1 << 12)
def reduced_boxes(problem: Problem, reduction: Reduction, name: str, box: Box) -> tuple[Box, ...]:
    """The cells of a field of the reduction's expression that are read to reduce `box`, as disjoint boxes."""
    cells, described = box & reduction.box, reduction.described[name]
    if cells.empty:
        return ()
    reads = sorted((read for read in reduction.reads if read.field == name), key=lambda read: read.offset)
    seen = (part for read in reads for part in problem.grid.folded(cells.shift(read.offset)))
    return disjoint(part & _reach(problem, described.box) for part in seen)


def advanced_box(problem: Problem) -> Box:
    """The smallest box with all cells that some update writes."""
    return reduce(Box.hull, (update.box for stage in problem.stages for update in stage.updates))


def write_box(problem: Problem, name: str, box: Box) -> Box:
    """The cells of a state field that advancing `box` writes."""
    return box & _reach(problem, problem.fields[name].box)


def _reach(problem: Problem, box: Box) -> Box:
    """A field's box, unbounded along periodic axes (there it spans the axis and repeats)."""
    for axis, periodic in enumerate(problem.grid.periodic):
        if periodic:
            box = box.with_axis(axis, -FAR, FAR)
    return box


def _endless(grid: Grid, box: Box) -> Box:
    """A box, unbounded along the periodic axes that it spans."""
    for axis, periodic in enumerate(grid.periodic):
        if periodic and box.shape[axis] == grid.shape[axis]:
            box = box.with_axis(axis, -FAR, FAR)
    return box
