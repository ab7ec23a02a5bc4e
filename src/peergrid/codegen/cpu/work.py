"""A plan on one tile: which row function runs on which cells, and where each of its operands lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, product

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.effort import is_costly
from peergrid.codegen.cpu.lanes import VECTOR, vector_for
from peergrid.codegen.cpu.past_caches import past_cache_code
from peergrid.codegen.cpu.plan import Node, Storage, StreamPlan, code_of
from peergrid.codegen.cpu.prefetch import NOTHING, Traffic
from peergrid.codegen.cpu.rows import Entries, Later, Operand, RowCode, Sample, Write
from peergrid.codegen.cpu.vectors import copy_code, fill_code
from peergrid.codegen.regions import Part, cover, mirror_cuts, mirrored
from peergrid.grid import Box, Grid, Index
from peergrid.grid.box import subtract
from peergrid.stencil import Growth, Problem, Update, footprint, write_box
from peergrid.stencil.expr import Param, Read
from peergrid.stencil.lagged import kept_value

Active = frozenset[str]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of an operand's value for a cell: in `storage` at the cell plus `shift`, or at a fixed `place`."""

    storage: Storage
    shift: Index = ()
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Form:
    """A row function, and where its operands lie."""

    code: RowCode
    accesses: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of cells, and what is done on its rows when a node comes there: one by one, or several at once (if any)."""

    box: Box
    single: Form
    several: Form | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The receivers of a field in a tile, each recorded when a node is done with its row.

    source: the storage of the values; numbers: of the receivers, as indices; cells: shape (receivers, axes).
    """

    code: RowCode
    source: Storage
    step: int
    numbers: Numbers
    cells: Numbers


@dataclass(frozen=True)
class Tile:
    """A part of the computed box along the axes across the stream, worked off on its own.

    recorded: the receivers (indices) to be recorded where their cell lies in the tile; left: fields whose values need
    not be in memory behind the pass; before, behind: the tiles beside it along axis 1 which have the same borders, in
    order: what one has computed around itself the next one takes, in 3D.
    """

    problem: Problem
    plan: StreamPlan
    box: Box
    recorded: Sequence[int] | Numbers
    left: frozenset[str] = frozenset()
    before: Box | None = None
    behind: Box | None = None

    def taken(self, node: Node) -> dict[str, Box]:
        """The cells of each window that a node need not compute: the tile before it has."""
        return self._passed_on(node, self.box) if self.before else {}

    def borders(self) -> Iterator[tuple[Storage, Box]]:
        """The places of cells that the tile before has computed."""
        for node in self.plan.nodes:
            for name, cells in self.taken(node).items():
                yield border(node, name), cells

    def _passed_on(self, node: Node, box: Box) -> dict[str, Box]:
        """The cells around a tile's box that the tile before it computes as well."""
        found: dict[str, Box] = {}
        for name in node.written:
            growth = self._targets[node.step][node.stage][name]
            region = self._grown(name, growth, box)
            lines = region.with_axis(1, region.lo[1], min(region.hi[1], box.lo[1] + growth.above[1]))
            if is_costly(self.problem, node.stage, name) and node.after[name].kind == "window" and not lines.empty:
                found[name] = lines
        return found

    def region(self, node: Node, name: str) -> Box:
        """The cells on which a node must know a field it writes."""
        return self._grown(name, self._targets[node.step][node.stage][name], self.box)

    @cached_property
    def _targets(self) -> Sequence[Sequence[Mapping[str, Growth]]]:
        """By step and stage, by how far the cells of each field written reach beyond the tile."""
        return footprint(self.problem, self.plan.steps).targets

    def _grown(self, name: str, growth: Growth, box: Box) -> Box:
        return write_box(self.problem, name, self.problem.grid.clip(growth.apply(box)))

    def pieces(self, node: Node) -> Iterator[Piece]:
        """The pieces of a node, in order: updates, values carried over, then what the tile before has computed, which
        may replace values that the updates read.

        Where a field goes into the memory of one that rotates, the cells without an update have the same values there.
        """
        stage = self.problem.stages[node.stage]
        grown = self._targets[node.step][node.stage]
        regions = {name: self._grown(name, grown[name], self.box) for name in stage.targets if name in node.written}
        taken = self.taken(node)
        for name, lines in taken.items():
            regions[name] = regions[name].with_axis(1, lines.hi[1], regions[name].hi[1])
        updated: dict[str, list[Box]] = {
            name: [] for name in regions if name not in node.in_place and name not in node.rotated.values()
        }
        for number, update in enumerate(stage.updates):
            for cells, active in _parts(self.problem.grid, update, regions):
                for name in active & updated.keys():
                    updated[name].append(cells)
                yield from self._updated(node, number, cells, active)
        for name, done in updated.items():
            rest = subtract((regions[name],), *done)
            for part in chain.from_iterable(self._handover_cuts(node, box, [(name, (0,) * box.ndim)]) for box in rest):
                yield self._copied(name, part, node.before[name], node.after[name])
        for name, lines in taken.items():
            yield self._moved(name, lines, border(node, name), node.after[name])
        for name, lines in self._passed_on(node, self.behind).items() if self.behind else ():
            yield self._moved(name, lines, node.after[name], border(node, name))
        if node.step == self.plan.steps - 1:
            yield from self._stored(node)

    def _updated(self, node: Node, number: int, cells: Box, active: Active) -> Iterator[Piece]:
        update = self.problem.stages[node.stage].updates[number]
        offsets = [read.offset for read in update.reads]
        for corner in mirror_cuts(self.problem.grid, cells, offsets):
            shifts = [(read.field, mirrored(self.problem.grid, corner.lo, read.offset)) for read in update.reads]
            shifts += [(name, (0,) * cells.ndim) for name in update.targets if name in node.written]
            for box in self._handover_cuts(node, corner, shifts):
                usual = (True, node.traffic, VECTOR)
                made_for = usual if self._by_planes(node, update, box, active) else (False, NOTHING, self._vector(box))

                def form(rows: int, first: Box, made_for: tuple[bool, Traffic, int] = made_for) -> Form:
                    in_place, renamed = node.overwritten(update.targets), node.renamed.intersection(update.targets)
                    planes, traffic, vector = made_for
                    code = code_of(self.problem, node.stage, number, in_place, renamed, planes, rows, traffic, vector)
                    accesses = (self._access(node, code, i, first, active) for i in range(len(code.operands)))
                    return Form(code, tuple(accesses))

                yield self._piece(box, form)

    def _piece(self, box: Box, form: Callable[[int, Box], Form]) -> Piece:
        """The forms for one row and for several, where the box has as many and the plan asks for them.

        form: of so many rows, and of the cells of the first of them.
        """
        rows = self.plan.at_once
        if not 1 < rows <= box.shape[0]:
            return Piece(box, form(1, box))
        return Piece(box, form(1, box), form(rows, box.with_axis(0, box.lo[0], box.hi[0] - rows + 1)))

    def _vector(self, box: Box) -> int:
        """The bytes of a vector for the lines of a box."""
        return vector_for(box.shape, self.problem.itemsize)

    def _by_planes(self, node: Node, update: Update, box: Box, active: Active) -> bool:
        """True if all that is read of a plane of a field lies in one storage, as far apart as in the grid.

        In two dimensions rows are long and pointers few: there nothing is gained.
        """
        return (
            box.ndim > 2
            and active == node.written.intersection(update.targets)
            and all(self._beside(node, read, box) for read in update.reads)
        )

    def _beside(self, node: Node, read: Read, box: Box) -> bool:
        """True if a value is reached from that of the same plane at the cell itself."""
        home = node.before.get(read.field, Storage("coefficient", read.field))
        there = self._at(home, box, mirrored(self.problem.grid, box.lo, read.offset))
        here = self._at(home, box, mirrored(self.problem.grid, box.lo, (read.offset[0], 0, 0)))
        return there.storage == here.storage and there.shift == (here.shift[0], *read.offset[1:])

    def _handover_cuts(self, node: Node, box: Box, shifts: Iterable[tuple[str, Index]]) -> Iterator[Box]:
        """The box cut so that what is handed over is met either inside the tile alone or beyond it alone."""
        split = [shift for name, shift in shifts if "handover" in node.kinds(name)]
        spans: list[list[tuple[int, int]]] = []
        for axis in range(box.ndim):
            lo, hi = box.lo[axis], box.hi[axis]
            edges = {edge - shift[axis] for shift in split for edge in (self.box.lo[axis], self.box.hi[axis])}
            spans.append(list(pairwise(sorted({lo, hi} | {edge for edge in edges if lo < edge < hi}))))
        for corner in product(*spans):
            yield Box(tuple(a for a, _ in corner), tuple(b for _, b in corner))

    def _access(self, node: Node, code: RowCode, number: int, box: Box, active: Active) -> Placement:
        if not code.users[number] & active:
            return Placement(Storage("sink", number=number))
        return self._place(node, code.operands[number], box)

    def _place(self, node: Node, operand: Operand, box: Box) -> Placement:
        match operand:
            case Write(name, ahead):
                return self._at(node.after[name], box, _ahead(box, ahead))
            case Read(name, offset):
                home = node.before.get(name) or Storage("coefficient", name)
                return self._at(home, box, mirrored(self.problem.grid, box.lo, offset))
            case Later(name, planes):
                home = Storage("source" if name in self.problem.state else "coefficient", name)
                return self._at(home, box, _ahead(box, planes))
            case Param(key):
                return Placement(Storage("parameter", key))
            case Entries(table):
                return Placement(Storage("table", table))
            case Sample(signal, ahead):
                return Placement(Storage("signal", signal, node.step), _ahead(box, ahead))
        return Placement(Storage("signal", operand.signal), place=(0, node.step))

    def _at(self, home: Storage, box: Box, shift: Index) -> Placement:
        """The access to the values at `shift` from the cells of a box; of a handover, in the part where they are."""
        if home.kind == "handover":
            inside = self.box.covers(box.shift(shift))
            home = Storage("target", home.name) if inside else Storage("window", number=home.number)
        return Placement(home, shift)

    def _moved(self, name: str, box: Box, source: Storage, target: Storage) -> Piece:
        """Lines from a window to its border, or back; a border's first cell of a plane is the box's first."""

        def place(home: Storage, row: int) -> Placement:
            return Placement(home, (row, -box.lo[1], -box.lo[2]) if home.kind == "border" else (row, 0, 0))

        def form(rows: int, first: Box) -> Form:
            code = copy_code(self.problem, name, rows)
            places = ((target, o.ahead) if isinstance(o, Write) else (source, _plane(o)) for o in code.operands)
            return Form(code, tuple(place(home, row) for home, row in places))

        return self._piece(box, form)

    def _copied(self, name: str, box: Box, source: Storage, target: Storage) -> Piece:
        """Values carried over; of a field that is left out of memory, the one that they are, where it is known."""
        value = kept_value(self.problem, name) if name in self.left and box.ndim == 3 else None

        def form(rows: int, first: Box) -> Form:
            if value is not None:
                return self._copy(fill_code(self.problem, name, value, rows), first, source, target)
            return self._copy(copy_code(self.problem, name, rows, self._vector(box)), first, source, target)

        return self._piece(box, form)

    def _copy(self, code: RowCode, box: Box, source: Storage, target: Storage) -> Form:
        """A row function that copies, with the places it copies from and to."""
        places = ((target, o.ahead) if isinstance(o, Write) else (source, _plane(o)) for o in code.operands)
        return Form(code, tuple(self._at(home, box, _ahead(box, row)) for home, row in places))

    def _stored(self, node: Node) -> Iterator[Piece]:
        """The values that a node is the last to write, from their windows to the target."""
        for name, home in node.after.items():
            box = write_box(self.problem, name, self.box)
            wanted = name not in self.left and node.stage == self._last_writer(name)
            if home.kind == "window" and wanted and not box.empty:
                yield self._kept(name, box, home)

    def _kept(self, name: str, box: Box, home: Storage) -> Piece:
        target = Storage("target", name)
        return self._piece(
            box, lambda rows, first: self._copy(past_cache_code(self.problem, name, rows), first, home, target)
        )

    def records(self, node: Node) -> Iterator[Records]:
        """The receivers to be recorded when a node is done with their row."""
        for name, numbers in self._heard.items():
            if node.stage == self._last_writer(name):
                home = node.after.get(name, Storage("coefficient", name))
                source = Storage("target", name) if home.kind == "handover" else home  # their cells are in the tile
                cells = self.problem.receiver_cells[numbers]
                code = copy_code(self.problem, name, vector=self.problem.itemsize)
                yield Records(code, source, node.step, numbers, cells)

    @cached_property
    def _heard(self) -> dict[str, Numbers]:
        """Of each field the recorded receivers in the tile."""
        found: dict[str, Numbers] = {}
        inside = np.zeros(len(self.problem.receivers), dtype=bool)
        inside[np.asarray(self.recorded, dtype=np.int64)] = True
        inside &= self.box.holds(self.problem.receiver_cells)
        for name, numbers in self.problem.receivers_of.items():
            if len(numbers := numbers[inside[numbers]]):
                found[name] = numbers
        return found

    def _last_writer(self, name: str) -> int:
        """The last stage that writes a field; of a coefficient, the last stage."""
        stages = self.problem.stages
        return max((s for s, stage in enumerate(stages) if name in stage.targets), default=len(stages) - 1)


def border(node: Node, name: str) -> Storage:
    """The place in which a node's lines of a field wait for the next tile."""
    return Storage("border", f"{name}, step {node.step}, stage {node.stage}")


def _plane(operand: Operand) -> int:
    """The rows ahead at which an operand is read."""
    assert isinstance(operand, Read)
    return operand.offset[0]


def _ahead(box: Box, rows: int) -> Index:
    """The shift by so many rows."""
    return (rows,) + (0,) * (box.ndim - 1)


def _parts(grid: Grid, update: Update, regions: dict[str, Box]) -> list[Part[str]]:
    """Disjoint boxes that cover what is asked of an update, each with the fields whose new values are needed there."""
    parts: list[Part[str]] = []
    for target in (name for name in update.targets if name in regions):
        parts = cover(parts, _images(grid, update.box, regions[target]), target)
    return parts


def _images(grid: Grid, box: Box, window: Box) -> tuple[Box, ...]:
    """As `Grid.images`, but one piece along periodic axes that the box spans."""
    for axis, wraps in enumerate(grid.periodic):
        if wraps and (box.lo[axis], box.hi[axis]) == (0, grid.shape[axis]):
            box = box.with_axis(axis, window.lo[axis], window.hi[axis])
    if box.empty or window.empty:
        return ()
    images = (image & window for image in _copies(grid, box, window))
    return tuple(image for image in images if not image.empty)


def _copies(grid: Grid, box: Box, window: Box) -> Iterator[Box]:
    """The box shifted by whole periods along the periodic axes on which it is a proper part."""
    shifts: list[Iterable[int]] = []
    for axis, (wraps, extent) in enumerate(zip(grid.periodic, grid.shape, strict=True)):
        lo, hi = box.lo[axis], box.hi[axis]
        spans = not wraps or (lo, hi) == (window.lo[axis], window.hi[axis])
        first = -((hi - 1 - window.lo[axis]) // extent)
        last = (window.hi[axis] - 1 - lo) // extent
        shifts.append((0,) if spans else range(first * extent, last * extent + 1, extent))
    return (box.shift(shift) for shift in product(*shifts))
