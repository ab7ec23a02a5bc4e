"""Which cells each device holds, computes and receives, for one cycle between two exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.grid import Box, Index
from peergrid.grid.partition import Partition
from peergrid.stencil import Growth, Problem, footprint, read_box, read_boxes, write_box


@dataclass(frozen=True, slots=True)
class Halo:
    """Cells of one field that `target` needs and `source` owns; `direction` points from source to target."""

    field: str
    source: int
    source_box: Box
    target: int
    target_box: Box
    direction: Index


@dataclass(frozen=True)
class Layout:
    """The memory of every device for cycles of `blocks`: the steps of each pass between two exchanges.

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
        """The owned box grown, without what lies beyond the grid's edges."""
        return self.problem.grid.clip(growth.apply(self.partition.owned(device)))

    def ghosted(self, device: int, name: str) -> Box:
        """The cells of a field that must be known before a cycle: the owned box and its ghost cells."""
        first = growths(self.problem, self.blocks)[0]
        return read_box(self.problem, name, self.compute_box(device, first), self.blocks[0])

    def local(self, device: int, name: str) -> Box:
        """The cells of a field that a device has memory for (possibly none)."""
        return self._local[device][name]

    def elements(self, device: int, name: str) -> int:
        """How many values a device stores for one slot of a field."""
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

    @cached_property
    def halos(self) -> tuple[Halo, ...]:
        """Every piece of ghost cells that is read, with its owner, on every device and state field."""
        return tuple(
            halo for d in range(self.devices) for name in self.problem.state for halo in self._incoming(d, name)
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
        return reduce(Box.hull, boxes)

    def _incoming(self, device: int, name: str) -> list[Halo]:
        grid, owned = self.problem.grid, self.partition.owned(device)
        found: list[Halo] = []
        first = self.compute_box(device, growths(self.problem, self.blocks)[0])
        read = read_boxes(self.problem, name, first, self.blocks[0])
        for ghost in self.ghosted(device, name) - owned:
            for source in self.partition.owners(ghost):
                for image, shift in grid.shifted_images(self.partition.owned(source), ghost):
                    target_box = image & ghost
                    if not any(target_box.overlaps(box) for box in read):
                        continue
                    source_box = target_box.shift(tuple(-s for s in shift))
                    found.append(
                        Halo(name, source, source_box, device, target_box, self._direction(source, device, shift))
                    )
        return found

    def _direction(self, source: int, target: int, shift: Index) -> Index:
        here, there = self.partition.coordinates(source), self.partition.coordinates(target)
        wraps = (s // n for s, n in zip(shift, self.problem.grid.shape, strict=True))
        steps = (t - (h + w * p) for h, t, w, p in zip(here, there, wraps, self.partition.parts, strict=True))
        return tuple((s > 0) - (s < 0) for s in steps)


def growths(problem: Problem, blocks: tuple[int, ...]) -> tuple[Growth, ...]:
    """How far beyond the owned box each pass of a cycle computes so that the passes after it find what they read."""
    growth = Growth.none(problem.grid.ndim)
    found = [growth]
    for steps in reversed(blocks[1:]):
        inputs = footprint(problem, steps).inputs
        reach = [_sum(growth, inputs[name]) for name in problem.state]
        growth = reduce(Growth.__or__, reach)
        found.append(growth)
    return tuple(reversed(found))


def blocks_of(depth: int, block: int) -> tuple[int, ...]:
    """A cycle of `depth` steps in passes of at most `block` steps."""
    whole, rest = divmod(depth, block)
    return (block,) * whole + ((rest,) if rest else ())


def _sum(one: Growth, two: Growth) -> Growth:
    return Growth(
        tuple(a + b for a, b in zip(one.below, two.below, strict=True)),
        tuple(a + b for a, b in zip(one.above, two.above, strict=True)),
    )
