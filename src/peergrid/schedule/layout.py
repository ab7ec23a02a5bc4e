"""The cells that each device stores, computes and receives in one exchange interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.grid import Box, Index
from peergrid.grid.box import disjoint, subtract
from peergrid.grid.partition import Partition
from peergrid.stencil import Growth, Problem, footprint, read_box, read_boxes, reduced_boxes, write_box

ROWS_PER_STEP = 4  # rows of a device for each step between exchanges, so that most of its work is not redundant


@dataclass(frozen=True, slots=True)
class Halo:
    """Cells of one field that `target` needs and `source` has; `direction` points from source to target."""

    field: str
    source: int
    source_box: Box
    target: int
    target_box: Box
    direction: Index


@dataclass(frozen=True)
class Layout:
    """The memory of every device for exchange intervals of `blocks`: the steps of each pass.

    (8,) is one pass of eight steps; (1, 1, 1) is three passes of one step over shrinking boxes (B+2R with R = 3).
    align: a device's own cells are split at multiples of so many alone, axis by axis (empty: anywhere).
    """

    problem: Problem
    partition: Partition
    blocks: tuple[int, ...]
    align: Index = ()

    @property
    def depth(self) -> int:
        """Steps between two exchanges."""
        return sum(self.blocks)

    @property
    def devices(self) -> int:
        return self.partition.devices

    def compute_box(self, device: int, growth: Growth) -> Box:
        """The owned box grown, without cells beyond the grid's edges."""
        return self.problem.grid.clip(growth.apply(self.partition.owned(device)))

    def ghosted(self, device: int, name: str) -> Box:
        """The cells of a field that must be known before an exchange interval: the owned box and its ghost cells."""
        first = growths(self.problem, self.blocks)[0]
        passes = read_box(self.problem, name, self.compute_box(device, first), self.blocks[0])
        return reduce(Box.hull, self._reduced(device, name), passes)

    def local(self, device: int, name: str) -> Box:
        """The cells of a field that a device has memory for (possibly none)."""
        return self._local[device][name]

    def elements(self, device: int, name: str) -> int:
        """The number of values that a device stores for one slot of a field."""
        shape = self.local(device, name).shape
        count = 1
        for axis in self.problem.fields[name].axes:
            count *= shape[axis]
        return count

    def memory(self, device: int) -> int:
        """Bytes that the fields need on a device: two slots of every state field, one of every coefficient."""
        values = sum(2 * self.elements(device, name) for name in self.problem.state)
        values += sum(self.elements(device, name) for name in self.problem.coefficients)
        return values * self.problem.itemsize

    @property
    def halos(self) -> tuple[Halo, ...]:
        """Every piece of ghost cells that is read, on every device and state field."""
        return self.exchanged + self.wrapped

    @cached_property
    def exchanged(self) -> tuple[Halo, ...]:
        """The pieces that other devices own."""
        return tuple(halo for d in range(self.devices) for name in self.problem.state for halo in self._owned(d, name))

    @cached_property
    def wrapped(self) -> tuple[Halo, ...]:
        """The pieces across periodic edges of axes that are not split: each device copies them from its own cells, and
        from ghost cells that the exchange filled.
        """
        return tuple(
            halo for d in range(self.devices) for name in self.problem.state for halo in self._repeated(d, name)
        )

    @cached_property
    def _local(self) -> tuple[dict[str, Box], ...]:
        return tuple({name: self._storage(d, name) for name in self.problem.fields} for d in range(self.devices))

    def _storage(self, device: int, name: str) -> Box:
        boxes = [write_box(self.problem, name, self.partition.owned(device))]
        for growth, steps in zip(growths(self.problem, self.blocks), self.blocks, strict=True):
            box = self.compute_box(device, growth)
            boxes.append(read_box(self.problem, name, box, steps))
            if name in self.problem.state:
                boxes.append(write_box(self.problem, name, box))
        return reduce(Box.hull, (*boxes, *self._reduced(device, name)))

    def _reduced(self, device: int, name: str) -> Iterator[Box]:
        """The cells of a field that are read to reduce what a device owns."""
        for one in self.problem.reductions:
            for alias in one.described:
                if one.source(alias)[0] == name:
                    yield from reduced_boxes(self.problem, one, alias, self.partition.owned(device))

    def _owned(self, device: int, name: str) -> Iterator[Halo]:
        """The ghost cells between neighbours, clipped to the grid along axes that are not split. What is read across
        periodic edges of these is copied from such cells, too.
        """
        read = self.wrap(self._read(device, name))
        for ghost in self._unwrapped(device, name) - self.partition.owned(device):
            for source in self.partition.owners(ghost):
                yield from self._images(name, source, self.partition.owned(source), device, ghost, read)

    def _repeated(self, device: int, name: str) -> Iterator[Halo]:
        """The ghost cells across periodic edges of axes that are not split, as far as they are read; the sources of
        others need not have arrived.
        """
        known, read = self._unwrapped(device, name), self._read(device, name)
        for ghost in disjoint(subtract(read, known)):
            for halo in self._images(name, device, known, device, ghost, read):
                if not any(d and not whole for d, whole in zip(halo.direction, self._whole, strict=True)):
                    yield halo

    def _images(self, name: str, source: int, box: Box, device: int, ghost: Box, read: Iterable[Box]) -> Iterator[Halo]:
        """The ghost cells that are cells of the source, or of one of its periodic copies, and are read."""
        for image, shift in self.problem.grid.shifted_images(box, ghost):
            target_box = image & ghost
            if any(target_box.overlaps(box) for box in read):
                source_box = target_box.shift(tuple(-s for s in shift))
                yield Halo(name, source, source_box, device, target_box, self._direction(source, device, shift))

    def _read(self, device: int, name: str) -> tuple[Box, ...]:
        """The cells of a field that a device reads after an exchange, before the next pass or in it."""
        first = self.compute_box(device, growths(self.problem, self.blocks)[0])
        return (*read_boxes(self.problem, name, first, self.blocks[0]), *self._reduced(device, name))

    def _unwrapped(self, device: int, name: str) -> Box:
        """The owned box and its ghost cells, clipped to the grid along axes that are not split."""
        box = self.ghosted(device, name)
        for axis, whole in enumerate(self._whole):
            if whole:
                box = box.with_axis(axis, max(box.lo[axis], 0), min(box.hi[axis], self.problem.grid.shape[axis]))
        return box

    def wrap(self, boxes: Iterable[Box]) -> tuple[Box, ...]:
        """The cells of some boxes, those beyond periodic edges of axes that are not split moved to the other end, as
        boxes that do not overlap.
        """
        found = tuple(boxes)
        for axis, whole in enumerate(self._whole):
            if whole:
                found = tuple(one for part in found for one in _wrapped(part, axis, self.problem.grid.shape[axis]))
        return disjoint(found)

    @cached_property
    def _whole(self) -> tuple[bool, ...]:
        """The periodic axes that are not split."""
        spans = zip(self.problem.grid.periodic, self.partition.parts, strict=True)
        return tuple(periodic and parts == 1 for periodic, parts in spans)

    def _direction(self, source: int, target: int, shift: Index) -> Index:
        here, there = self.partition.coordinates(source), self.partition.coordinates(target)
        wraps = (s // n for s, n in zip(shift, self.problem.grid.shape, strict=True))
        steps = (t - (h + w * p) for h, t, w, p in zip(here, there, wraps, self.partition.parts, strict=True))
        return tuple((s > 0) - (s < 0) for s in steps)


def _wrapped(box: Box, axis: int, cells: int) -> Iterator[Box]:
    """The pieces of a box between two edges of an axis, each as the cells of the grid that it repeats."""
    for repeat in range(box.lo[axis] // cells, -(-box.hi[axis] // cells)):
        first = repeat * cells
        yield box.with_axis(axis, max(box.lo[axis] - first, 0), min(box.hi[axis] - first, cells))


def growths(problem: Problem, blocks: tuple[int, ...]) -> tuple[Growth, ...]:
    """The growth of the owned box in each pass of an exchange interval that the reads of later passes need."""
    growth = Growth.none(problem.grid.ndim)
    found = [growth]
    for steps in reversed(blocks[1:]):
        inputs = footprint(problem, steps).inputs
        reach = [_sum(growth, inputs[name]) for name in problem.state]
        growth = reduce(Growth.__or__, reach)
        found.append(growth)
    return tuple(reversed(found))


def blocks_of(depth: int, block: int) -> tuple[int, ...]:
    """An exchange interval of `depth` steps in passes of at most `block` steps."""
    whole, rest = divmod(depth, block)
    return (block,) * whole + ((rest,) if rest else ())


def _sum(one: Growth, two: Growth) -> Growth:
    return Growth(
        tuple(a + b for a, b in zip(one.below, two.below, strict=True)),
        tuple(a + b for a, b in zip(one.above, two.above, strict=True)),
    )
