"""The cells that a kernel has to compute, cut into boxes on each of which every cell does the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.onestep.groups import Group, Member
from peergrid.codegen.regions import Part, split, unmirrored
from peergrid.grid import Box
from peergrid.stencil import Growth, Problem, footprint, write_box


@dataclass(frozen=True, order=True)
class Variant:
    """The work of one thread at a cell: the assignments it makes, the fields it stores.

    A stored field that no assignment writes is carried over. mirrored: some read may lie beyond a reflecting edge.
    """

    group: int
    members: tuple[Member, ...]
    stored: tuple[str, ...]
    mirrored: bool


@dataclass(frozen=True)
class Region:
    """Cells that share a variant."""

    box: Box
    variant: Variant


@dataclass(frozen=True)
class Later:
    """The steps that follow one, so many, after which `box` is done: no cells are made but those that they read."""

    box: Box
    steps: int

    def read(self, problem: Problem, stage: int, name: str) -> Box:
        """The cells of what a stage writes that are read by others, of its own step or of these, or are in the box."""
        growth = footprint(problem, self.steps + 1).targets[0][stage][name]
        return problem.grid.clip(growth.apply(self.box))


Label = tuple[str, Member | str]


def regions(
    problem: Problem, number: int, group: Group, box: Box, *, carries: bool = True, later: Later | None = None
) -> tuple[Region, ...]:
    """The disjoint regions of one group for advancing `box` by one step.

    carries: whether cells that no update ever writes are carried over; else they have their value wherever it is
    read, and are in no region unless another field of theirs is written; later: bounds what is made, since memory
    may end where no step reads.
    """
    needs = footprint(problem, 1).targets[0]

    def around(stage: int, name: str) -> Box:
        cells = problem.grid.clip(needs[stage][name].apply(box))
        return cells & later.read(problem, stage, name) if later else cells

    pieces: list[Part[Label]] = [(_hull(problem, group, box), frozenset())]
    for name in group.targets(problem):
        cells = write_box(problem, name, around(group.last_stage(problem, name), name))
        for written in (cells,) if carries else _written(problem, name, cells):
            pieces = split(pieces, written, ("store", name))
    for member in group.members(problem):
        update = problem.stages[member.stage].updates[member.update]
        for image in problem.grid.images(update.box, around(member.stage, member.of(problem).target)):
            pieces = split(pieces, image, ("make", member))
    offsets = (read.offset for member in group.members(problem) for read in member.of(problem).reads)
    pieces = split(pieces, unmirrored(problem.grid, offsets), ("unmirrored", ""))
    order = {member: place for place, member in enumerate(group.members(problem))}
    found = (Region(cells, _variant(number, labels, order)) for cells, labels in pieces)
    return tuple(_joined(region for region in found if region.variant.stored))


def _written(problem: Problem, name: str, cells: Box) -> Iterator[Box]:
    """Those of some cells in which any stage writes a field."""
    for stage in problem.stages:
        for update, _ in stage.writers(name):
            yield from problem.grid.images(update.box, cells)


def _hull(problem: Problem, group: Group, box: Box) -> Box:
    """The cells that any stage of a group makes to advance a box."""
    growths = [growth for s in group.stages for growth in footprint(problem, 1).targets[0][s].values()]
    return problem.grid.clip(reduce(Growth.__or__, growths).apply(box))


def _variant(number: int, labels: frozenset[Label], order: dict[Member, int]) -> Variant:
    made = sorted((what for kind, what in labels if isinstance(what, Member)), key=order.__getitem__)
    stored = tuple(sorted(str(what) for kind, what in labels if kind == "store"))
    return Variant(number, tuple(made), stored, mirrored=("unmirrored", "") not in labels)


def _joined(found: Iterable[Region]) -> list[Region]:
    """Regions of one variant that together are a box, as one region."""
    joined: list[Region] = []
    for region in found:
        while (other := next((o for o in joined if _box_together(o, region)), None)) is not None:
            joined.remove(other)
            region = Region(other.box.hull(region.box), region.variant)
        joined.append(region)
    return joined


def _box_together(one: Region, two: Region) -> bool:
    return one.variant == two.variant and one.box.hull(two.box).size == one.box.size + two.box.size
