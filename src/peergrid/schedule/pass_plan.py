"""The input of a strategy: passes over the devices' boxes, and the stages of the halo exchange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.grid import Box, Index
from peergrid.schedule.exchange import Stages
from peergrid.schedule.layout import Halo, Layout, blocks_of, growths
from peergrid.schedule.ops import Compute, Copy, Queue, Reduce, Route
from peergrid.stencil import Growth, Problem, advanced_box, footprint

HIDES_COPIES = 1 << 20
"""Cells of a device whose step takes a GPU longer than a launch for a few rows and a copy of them after it."""


@dataclass(frozen=True, slots=True)
class Due:
    """A reduction, by its name, that is to be made at a time level counted from the start of a schedule."""

    level: int
    reduction: str


@dataclass(frozen=True, slots=True)
class Pass:
    """Every device advances its box, grown by `growth`, by `steps` steps; `closing` passes end in an exchange.

    After that come the reductions of the names in `due`.
    """

    level: int
    steps: int
    source: int
    target: int
    growth: Growth
    closing: bool
    due: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassPlan:
    """The passes of a schedule, the stages of its exchange, and the copies of each device across its own periodic edges
    after that; separate: the stages run one after another.
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
        neighbours: list[set[int]] = [set() for _ in self.devices]
        for halo in self.layout.exchanged:
            if halo.source != halo.target:
                neighbours[halo.source].add(halo.target)
                neighbours[halo.target].add(halo.source)
        return tuple(tuple(sorted(others)) for others in neighbours)

    @property
    def multi_pass(self) -> bool:
        """True if an exchange interval has several passes, so that earlier ones write ghost cells too."""
        return len(self.layout.blocks) > 1

    def divided(self, device: int) -> bool:
        """True if a device computes its interior separately: from its boundary region, from earlier passes, or from an
        exchange, where only reductions read what others send.
        """
        inner, owned = self.interior[device], self.layout.partition.owned(device)
        return not inner.empty and (self.multi_pass or bool(self.peers[device]) or inner != owned)

    @cached_property
    def one_step(self) -> bool:
        """True if the closing pass makes one step, by kernels for boxes of any extent."""
        return self.layout.blocks[-1] == 1 and not self.layout.align

    @cached_property
    def wraps_boundary(self) -> bool:
        """True if what devices copy across their own periodic edges is part of their boundary regions, so that they
        copy it beside the interior: rows of large 2D grids, one step per pass.
        """
        rows = all(halo.direction[0] and not any(halo.direction[1:]) for halo in self.wraps)
        large = all(self.layout.partition.owned(d).size >= HIDES_COPIES for d in self.devices)
        return self.one_step and not self.multi_pass and self.layout.problem.grid.ndim == 2 and rows and large

    @cached_property
    def interior(self) -> tuple[Box, ...]:
        """For each device the part of its box that needs no cells of others, and that no other device needs.

        With one step per pass, cells at the grid's edges that keep their value are part of the boundary region, so that
        one kernel serves the interior; see also `wraps_boundary`.
        """
        accessing: list[list[Halo]] = [[] for _ in self.devices]
        for halo in self.layout.halos if self.wraps_boundary else self.layout.exchanged:
            for device in {halo.source, halo.target}:
                accessing[device].append(halo)
        boxes = (_interior(self.layout, device, accessing[device]) for device in self.devices)
        advanced = advanced_box(self.layout.problem)
        return tuple(box & advanced if self.one_step else box for box in boxes)

    def boundary_region(self, device: int) -> tuple[Box, ...]:
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

    def reduce(self, host: int, queue: Queue, part: Pass) -> Iterator[Reduce]:
        """The reductions that are due after the pass, of what one device owns."""
        owned = self.layout.partition.owned(queue.device)
        for one in self.layout.problem.reductions:
            box = owned & one.box
            if one.name in part.due and not box.empty:
                yield Reduce(host, queue.device, queue, one.name, box, part.level + part.steps, part.target)

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


def due(problem: Problem, start: int | None, steps: int) -> tuple[Due, ...]:
    """The reductions that fall into so many steps from step `start` of a run on; None: where none does."""
    if start is None:
        return ()
    levels = range(1, steps + 1)
    return tuple(Due(n, one.name) for n in levels for one in problem.reductions if (start + n) % one.every == 0)


def passes_of(layout: Layout, block: int, steps: int, slot: int, reductions: Sequence[Due] = ()) -> Iterator[Pass]:
    """The passes of `steps` steps in exchange intervals of the layout's depth; those that end where reductions are due,
    and the last, may be shorter. A reduction of values before the step is preceded by an exchange interval of one step.
    """
    level, ends = 0, _ends(layout.problem, steps, reductions)
    names: dict[int, tuple[str, ...]] = {}
    for one in reductions:
        names[one.level] = (*names.get(one.level, ()), one.reduction)
    while level < steps:
        end = next(end for end in ends if end > level)
        blocks = blocks_of(min(layout.depth, end - level), block)
        for number, (growth, length) in enumerate(zip(growths(layout.problem, blocks), blocks, strict=True)):
            closing = number == len(blocks) - 1
            found = names.get(level + length, ()) if closing else ()
            yield Pass(level, length, slot, 1 - slot, growth, closing, found)
            level += length
            slot = 1 - slot


def _ends(problem: Problem, steps: int, reductions: Sequence[Due]) -> tuple[int, ...]:
    """The levels at which an exchange interval has to end, in order."""
    changes = {one.name for one in problem.reductions if one.previous}
    found = {steps, *(one.level for one in reductions)}
    found |= {one.level - 1 for one in reductions if one.reduction in changes}
    return tuple(sorted(found))


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
    """The box cut to multiples of `align`, except where it ends with the owned box."""
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
