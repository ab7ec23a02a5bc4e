"""What a strategy has to arrange: passes over the devices' boxes and the halos between cycles, in stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.grid import Box, Index
from peergrid.schedule.exchange import Stages
from peergrid.schedule.layout import Halo, Layout, blocks_of, growths
from peergrid.schedule.ops import Compute, Copy, Queue, Route
from peergrid.stencil import Growth, footprint


@dataclass(frozen=True, slots=True)
class Pass:
    """Every device advances its box, grown by `growth`, by `steps` steps; `closing` passes end in an exchange."""

    level: int
    steps: int
    source: int
    target: int
    growth: Growth
    closing: bool


@dataclass(frozen=True)
class Work:
    """The passes of a schedule, the stages of its exchange, and what each device then copies across periodic edges of
    its own; `separate` asks for order between the stages.
    """

    layout: Layout
    passes: tuple[Pass, ...]
    stages: Stages
    wraps: tuple[Halo, ...]
    separate: bool
    route: Route

    @property
    def devices(self) -> range:
        return range(self.layout.devices)

    @cached_property
    def peers(self) -> tuple[tuple[int, ...], ...]:
        """For each device the others it sends halos to or receives them from."""
        linked: list[set[int]] = [set() for _ in self.devices]
        for halo in self.layout.exchanged:
            if halo.source != halo.target:
                linked[halo.source].add(halo.target)
                linked[halo.target].add(halo.source)
        return tuple(tuple(sorted(others)) for others in linked)

    @property
    def deep(self) -> bool:
        """Whether a cycle has several passes, so that earlier ones write ghost cells too."""
        return len(self.layout.blocks) > 1

    def divided(self, device: int) -> bool:
        """Whether a device computes its interior beside others: cells that are waited for, or earlier passes."""
        inner = self.interior[device]
        return not inner.empty and (self.deep or inner != self.layout.partition.owned(device))

    @cached_property
    def interior(self) -> tuple[Box, ...]:
        """For each device the part of its box that needs no cell of another device and that no other waits for.

        With one step per pass, cells at the grid's edges that keep their value go with the rim: the interior is all
        of one kind then, and one kernel's.
        """
        touching: list[list[Halo]] = [[] for _ in self.devices]
        for halo in self.layout.exchanged:
            for device in {halo.source, halo.target}:
                touching[device].append(halo)
        boxes = (_interior(self.layout, device, touching[device]) for device in self.devices)
        alike = self.layout.blocks[-1] == 1 and not self.layout.align
        return tuple(box & self._advanced if alike else box for box in boxes)

    @cached_property
    def _advanced(self) -> Box:
        """The smallest box with all cells that some update writes."""
        stages = self.layout.problem.stages
        return reduce(Box.hull, (update.box for stage in stages for update in stage.updates))

    def rim(self, device: int) -> tuple[Box, ...]:
        """The owned box without its interior, as disjoint boxes."""
        return self.layout.partition.owned(device) - self.interior[device]

    def compute(self, host: int, queue: Queue, part: Pass, box: Box | None = None) -> Compute:
        """The pass on one device, over its whole box unless a part is named."""
        whole = self.layout.compute_box(queue.device, part.growth)
        return Compute(
            host=host,
            device=queue.device,
            queue=queue,
            box=whole if box is None else box,
            level=part.level,
            steps=part.steps,
            source=part.source,
            target=part.target,
        )

    def copy(self, host: int, queue: Queue, part: Pass, halo: Halo) -> Copy:
        """The copy of one halo as it stands after the pass."""
        return Copy(
            host=host,
            queue=queue,
            field=halo.field,
            slot=part.target,
            level=part.level + part.steps,
            source_device=halo.source,
            source_box=halo.source_box,
            target_device=halo.target,
            target_box=halo.target_box,
            route=self.route,
        )


def passes_of(layout: Layout, block: int, steps: int, slot: int) -> Iterator[Pass]:
    """The passes of `steps` steps in cycles of the layout's depth; the last cycle may be shorter."""
    level = 0
    while level < steps:
        blocks = blocks_of(min(layout.depth, steps - level), block)
        for number, (growth, length) in enumerate(zip(growths(layout.problem, blocks), blocks, strict=True)):
            yield Pass(level, length, slot, 1 - slot, growth, closing=number == len(blocks) - 1)
            level += length
            slot = 1 - slot


def _interior(layout: Layout, device: int, halos: list[Halo]) -> Box:
    """The owned box cut back, on every side with a neighbour, by what is sent there and by what is read from there."""
    owned = layout.partition.owned(device)
    reach = reduce(
        Growth.__or__, (footprint(layout.problem, layout.blocks[-1]).inputs[f] for f in layout.problem.state)
    )
    box = owned
    for halo in halos:
        axis = next((a for a, d in enumerate(halo.direction) if d), None)
        if axis is None:
            continue
        towards_larger = halo.direction[axis] > 0
        if halo.source == device:
            box &= _cut(owned, halo.source_box, axis, upper=towards_larger)
        if halo.target == device:
            lo = owned.lo[axis] + reach.below[axis] if towards_larger else owned.lo[axis]
            hi = owned.hi[axis] if towards_larger else owned.hi[axis] - reach.above[axis]
            box &= owned.with_axis(axis, lo, max(lo, hi))
    box = _aligned(box, owned, layout.align)
    return box if not box.empty else Box(owned.lo, owned.lo)


def _aligned(box: Box, owned: Box, align: Index) -> Box:
    """The box without what lies beyond multiples of `align`, save where it ends with the owned box."""
    for axis, unit in enumerate(align):
        lo, hi = box.lo[axis], box.hi[axis]
        lo = lo if lo == owned.lo[axis] else -(-lo // unit) * unit
        hi = hi if hi == owned.hi[axis] else hi // unit * unit
        box = box.with_axis(axis, lo, hi)
    return box


def _cut(owned: Box, sent: Box, axis: int, *, upper: bool) -> Box:
    """The owned box without what is sent across its upper or lower face."""
    if upper:
        return owned.with_axis(axis, owned.lo[axis], sent.lo[axis])
    return owned.with_axis(axis, sent.hi[axis], max(sent.hi[axis], owned.hi[axis]))
