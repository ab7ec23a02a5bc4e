"""The memory of virtual devices: NumPy arrays with the cells of the grid that they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType

import numpy as np

from peergrid.grid import Array, Box, Field, FirstValues, Index
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Copy
from peergrid.stencil import Problem
from peergrid.stencil.lagged import kept_value, without_update
from peergrid.stencil.rotating import rotating_fields

LINE = 64  # bytes of a cache line
PAGE = 4096  # bytes
APART = 17  # lines of a page between the begins of one array and the next


@dataclass(frozen=True)
class Block:
    """The values of a field on the cells of `box`; a profile's array has one dimension only."""

    field: Field
    box: Box
    array: Array

    @property
    def origin(self) -> Index:
        """The global index of the array's first element, along the field's axes."""
        return tuple(self.box.lo[axis] for axis in self.field.axes)

    def view(self, box: Box) -> Array:
        """The values on `box`; a profile gives extent 1 along the axes where it does not vary."""
        chosen = tuple(slice(box.lo[a] - self.box.lo[a], box.hi[a] - self.box.lo[a]) for a in self.field.axes)
        spread = tuple(slice(None) if a in self.field.axes else None for a in range(box.ndim))
        return self.array[chosen][spread]


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of one device: two slots of each state field, one block of each coefficient."""

    device: int
    state: dict[str, tuple[Block, Block]]
    coefficients: dict[str, Block]

    def block(self, name: str, slot: int) -> Block:
        """The block of a field; a coefficient is the same in both slots."""
        return self.state[name][slot] if name in self.state else self.coefficients[name]


def allocate(layout: Layout, device: int, rotating: Mapping[str, str] = MappingProxyType({})) -> DeviceMemory:
    """New memory of a device, filled with NaN so that missing writes are detected.

    rotating: fields without memory of their own: each is in the other slot of another field (see `rotating_fields`).
    """
    problem = layout.problem
    places = count()
    state = {
        name: (_empty(layout, device, name, places), _empty(layout, device, name, places))
        for name in problem.state
        if name not in rotating
    }
    for name, followed in rotating.items():
        described, box = problem.fields[name], layout.local(device, name)
        one, two = (Block(described, box, block.view(box)) for block in state[followed])
        state[name] = (two, one)
    return DeviceMemory(device, state, {name: _empty(layout, device, name, places) for name in problem.coefficients})


def rotating(layout: Layout, norm: str | None = None) -> Mapping[str, str]:
    """The fields that rotate in the memory of a layout: none if a pass makes several steps.

    Several steps compute cells more than once, and ghost cells, each time from the same old values. norm: a field whose
    old and new values are compared after every step.
    """
    found = rotating_fields(layout.problem)
    return {} if layout.blocks != (1,) or norm in found else found


def owned_receivers(layout: Layout, device: int) -> tuple[int, ...]:
    """The receivers whose cell a device owns, as indices into the problem's receivers."""
    inside = layout.partition.owned(device).holds(layout.problem.receiver_cells)
    return tuple(np.flatnonzero(inside).tolist())


def fill(layout: Layout, memory: DeviceMemory, name: str, values: FirstValues, slot: int = 0) -> None:
    """Set a field on all cells of a device, ghost cells included, from its global array or a function of a box."""
    block = memory.block(name, slot)
    if block.array.size:
        block.array[...] = take_cells(layout.problem, block.field, values, block.box)


def keeps_value(problem: Problem, memory: DeviceMemory, name: str, slot: int) -> bool:
    """True if the cells that no update writes have the value that the problem states for them, or if it states none."""
    value = kept_value(problem, name)
    if value is None:
        return True
    block, bits = memory.block(name, slot), np.dtype(f"u{problem.itemsize}")
    kept = np.array(value, problem.grid.dtype).view(bits)
    boxes = (box & block.box for box in without_update(problem, name))
    cells = (block.view(box) for box in boxes if not box.empty)
    return all(bool((values.view(bits) == kept).all()) for values in cells)


def take_cells(problem: Problem, described: Field, values: FirstValues, box: Box) -> Array:
    """The values on `box` of a global array, following the grid around periodic edges; a view if possible.

    A function is called for each part of the box that lies in one period.
    """
    if callable(values):
        whole = np.empty(box.shape, problem.grid.dtype)
        for image, shift in problem.grid.shifted_images(described.box, box):
            piece = image & box
            whole[piece.slices(box.lo)] = values(piece.shift(tuple(-n for n in shift)) if any(shift) else piece)
        return whole
    found = values
    for place, axis in enumerate(described.axes):
        index = _indices(problem, described, box, axis)
        straight = index.size > 0 and index[-1] - index[0] == index.size - 1
        part = (slice(None),) * place + (slice(int(index[0]), int(index[-1]) + 1),) if straight else ()
        found = found[part] if straight else np.take(found, index, axis=place)
    return found


def _indices(problem: Problem, described: Field, box: Box, axis: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    index = np.arange(box.lo[axis], box.hi[axis])
    if problem.grid.periodic[axis]:
        return index % problem.grid.shape[axis]
    return index - described.box.lo[axis]


def collect(layout: Layout, memories: Iterable[DeviceMemory], name: str, slot: int, box: Box | None = None) -> Array:
    """The global array of a state field, or its values on a box, gathered from the cells that each device owns."""
    wanted = box or layout.problem.fields[name].box
    whole = np.full(wanted.shape, np.nan, dtype=layout.problem.grid.dtype)
    for memory in memories:
        owned = layout.partition.owned(memory.device) & wanted
        if not owned.empty:
            whole[owned.slices(wanted.lo)] = memory.block(name, slot).view(owned)
    return whole


def copy(memories: Sequence[DeviceMemory] | Mapping[int, DeviceMemory], op: Copy) -> None:
    """Copy cells between the memories of two devices."""
    source = memories[op.source_device].block(op.field, op.slot)
    target = memories[op.target_device].block(op.field, op.slot)
    target.view(op.target_box)[...] = source.view(op.source_box)


def views(layout: Layout, memories: Iterable[DeviceMemory], name: str, slot: int) -> tuple[tuple[Box, Array], ...]:
    """The cells of a state field that each device owns, without a copy; read-only."""
    found: list[tuple[Box, Array]] = []
    for memory in memories:
        owned = layout.partition.owned(memory.device) & layout.problem.fields[name].box
        if not owned.empty:
            values = memory.block(name, slot).view(owned)
            values.flags.writeable = False
            found.append((owned, values))
    return tuple(found)


def first_nonfinite(layout: Layout, memories: Iterable[DeviceMemory], name: str, slot: int) -> Index | None:
    """The first owned cell, in the order of the devices, in which a state field is NaN or infinite."""
    for memory in memories:
        owned = layout.partition.owned(memory.device) & layout.problem.fields[name].box
        if owned.empty:
            continue
        finite = np.isfinite(memory.block(name, slot).view(owned))
        if not finite.all():
            place = np.unravel_index(int(np.argmin(finite)), owned.shape)
            return tuple(int(i) + o for i, o in zip(place, owned.lo, strict=True))
    return None


def _empty(layout: Layout, device: int, name: str, places: Iterator[int]) -> Block:
    """A block of NaN; places: the number of this array among those of the device."""
    described = layout.problem.fields[name]
    box = layout.local(device, name)
    shape = tuple(box.shape[axis] for axis in described.axes)
    if len(shape) < 3:
        return Block(described, box, np.full(shape, np.nan, dtype=layout.problem.grid.dtype))
    return Block(described, box, _on_lines(layout.problem, shape, box.lo[-1], next(places)))


def _on_lines(problem: Problem, shape: Index, first: int, place: int) -> Array:
    """An array of NaN whose rows lie on cache lines with the cell at which most updates begin; the first is `first`.

    Arrays begin at different lines of a page: processors take a load and a store of equal places in two pages for the
    same at first, and they share the places of a first-level cache.
    """
    updates = [update.box for stage in problem.stages for update in stage.updates]
    begin = max(updates, key=lambda box: box.size).lo[-1] if updates else 0
    line = LINE // problem.itemsize
    row = -(-shape[-1] // line) * line
    size = shape[0] * shape[1] * row
    values = np.full(size + line + 2 * PAGE // problem.itemsize, np.nan, dtype=problem.grid.dtype)
    start = (
        -values.ctypes.data % PAGE // problem.itemsize
        + (first - begin) % line
        + place * APART * line % (PAGE // problem.itemsize)
    )
    return values[start : start + size].reshape(*shape[:-1], row)[..., : shape[-1]]
