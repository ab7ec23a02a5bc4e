"""Does every read find the time level that the mathematics asks for, on every cell?

The operations are replayed in one of their possible orders; without races every other order gives the same. Of each
device's field and slot only a coarse picture is kept: the cells between the edges of all boxes that occur are one cell
each (compressed coordinates), and all these pictures lie in one flat array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Index
from peergrid.schedule.access import Access, Place
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import Order
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Copy
from peergrid.schedule.races import Touched
from peergrid.schedule.unroll import Placed
from peergrid.stencil import write_box

NOTHING = -1
"""The level of cells that nobody wrote."""

Cells = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Plane:
    """One place in compressed coordinates: the cuts along each axis and where its cells start in the flat array."""

    cuts: tuple[tuple[int, ...], ...]
    offset: int

    @property
    def shape(self) -> Index:
        return tuple(len(cuts) - 1 for cuts in self.cuts)

    def cells(self, box: Box) -> Cells:
        """The places in the flat array of the cells of a box, whose edges are all among the cuts."""
        flat = np.zeros((), dtype=np.int64)
        for axis, cuts in enumerate(self.cuts):
            line = np.arange(cuts.index(box.lo[axis]), cuts.index(box.hi[axis]))
            flat = np.add.outer(flat * (len(cuts) - 1), line)
        return flat.ravel() + self.offset

    def box(self, cell: int) -> Box:
        """The cells of the grid that one place of the flat array stands for."""
        index = np.unravel_index(cell - self.offset, self.shape)
        spans = [(cuts[int(i)], cuts[int(i) + 1]) for cuts, i in zip(self.cuts, index, strict=True)]
        return Box(tuple(a for a, _ in spans), tuple(b for _, b in spans))


@dataclass(eq=False)
class LevelMap:
    """The level of every cell of every place, and which operation wrote it last."""

    planes: dict[Place, Plane]
    levels: NDArray[np.int64]

    @classmethod
    def over(cls, boxes: Iterable[tuple[Place, Box]]) -> LevelMap:
        """A map fine enough for all these boxes, nothing written yet."""
        seen: dict[Place, set[Box]] = {}
        for place, box in boxes:
            seen.setdefault(place, set()).add(box)
        planes: dict[Place, Plane] = {}
        size = 0
        for place, known in seen.items():
            axes = range(next(iter(known)).ndim)
            cuts = tuple(tuple(sorted({b.lo[a] for b in known} | {b.hi[a] for b in known})) for a in axes)
            planes[place] = Plane(cuts, size)
            size += int(np.prod(planes[place].shape))
        return cls(planes, np.full(size, NOTHING, dtype=np.int64))


def stale_reads(layout: Layout, order: Order, touched: Touched, first: int, final: int, steps: int) -> list[Fault]:
    """Every read that does not find its level; at the end each device must own level `steps` in slot `final`.

    first: the slot in which all cells, ghost cells included, start at level 0.
    """
    ends = list(_ends(layout, final))
    starts = [((d, n, first), layout.local(d, n)) for d in range(layout.devices) for n in layout.problem.state]
    starts = [(place, box) for place, box in starts if not box.empty]
    used = {(access.place, access.box) for some in touched for access in some}
    picture = LevelMap.over([*used, *ends, *starts])
    where = {key: picture.planes[key[0]].cells(key[1]) for key in {*used, *ends, *starts}}
    for key in starts:
        picture.levels[where[key]] = 0
    faults: list[Fault] = []
    for placed, some in zip(order.done, touched, strict=True):
        for access in some:
            cells, level = where[access.place, access.box], placed.base + access.level
            if access.writes:
                picture.levels[cells] = level
            elif (found := picture.levels[cells] != level).any():
                faults.append(_stale(picture, placed, access, cells[found], level))
                picture.levels[cells] = level  # one fault, not all that follow from it
    return faults + [fault for place, box in ends for fault in _unfinished(picture, place, where[place, box], steps)]


def misplaced(layout: Layout, placed: Placed) -> Iterator[Fault]:
    """A copy must bring cells to where they belong: to themselves, or around a periodic edge."""
    op = placed.op
    if not isinstance(op, Copy) or op.source_box.empty:
        return
    grid = layout.problem.grid
    moves = (t - s for s, t in zip(op.source_box.lo, op.target_box.lo, strict=True))
    for move, extent, wraps in zip(moves, grid.shape, grid.periodic, strict=True):
        if move % extent if wraps else move:
            message = (
                f"Stale read: {placed} needs the cells {op.target_box} of '{op.field}', it brings {op.source_box}."
            )
            yield Fault("stale read", message, (op,))
            return


def _ends(layout: Layout, final: int) -> Iterator[tuple[Place, Box]]:
    """What each device must hold when all is over: the cells that it owns."""
    for device in range(layout.devices):
        for name in layout.problem.state:
            box = write_box(layout.problem, name, layout.partition.owned(device))
            if not box.empty:
                yield (device, name, final), box


def _stale(picture: LevelMap, placed: Placed, access: Access, wrong: Cells, level: int) -> Fault:
    device, name, slot = access.place
    cell = int(wrong[0])
    message = (
        f"Stale read: {placed} needs '{name}' slot {slot} of device {device} at level {level} in "
        f"{picture.planes[access.place].box(cell)}, it finds {_found(picture, cell)}."
    )
    return Fault("stale read", message, (placed.op,))


def _unfinished(picture: LevelMap, place: Place, cells: Cells, steps: int) -> Iterator[Fault]:
    wrong = cells[picture.levels[cells] != steps]
    if not len(wrong):
        return
    device, name, slot = place
    cell = int(wrong[0])
    message = (
        f"Stale read: at the end '{name}' slot {slot} of device {device} is needed at level {steps} in "
        f"{picture.planes[place].box(cell)}, it is {_found(picture, cell)}."
    )
    yield Fault("stale read", message, ())


def _found(picture: LevelMap, cell: int) -> str:
    level = int(picture.levels[cell])
    return "nothing that was ever written" if level == NOTHING else f"level {level}"
