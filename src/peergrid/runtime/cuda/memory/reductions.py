"""Memory for reductions: a record for each of them, each time it is made, on each device; and how records are read.

See `codegen/cuda/skeletons/reduce.cuh` for what a record holds. Devices own slabs along axis 0: so each has a part of
at most two groups, and in 1D of two leaves, that others have parts of, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.reduce import REDUCED, record_doubles
from peergrid.codegen.reductions import GROUP, LEAF, Doubles, groups, leaves, neutral, total
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.schedule import Layout
from peergrid.stencil import Reduction
from peergrid.stencil.reduction import Series


class ReductionMemory:
    """The records of all reductions of a problem."""

    def __init__(self, layout: Layout, devices: Devices, total_steps: int) -> None:
        self._layout, self._devices, self._total = layout, devices, total_steps
        self._named = {one.name: one for one in layout.problem.reductions}
        self._records: dict[tuple[str, int], int] = {}
        for device in devices.mine:
            for one in layout.problem.reductions:
                if count := _bytes(layout, one, device, total_steps):
                    self._records[one.name, device] = devices.allocate(device, count)

    def struct(self, name: str, device: int) -> tuple[int, NDArray[Any]]:
        """The thread blocks that make a reduction on a device, and what they are given, shape (1,)."""
        one = self._named[name]
        first, last, begin, end = _groups(self._layout, one, device)
        values = np.zeros(1, REDUCED)
        values["records"], values["record"] = self._records[name, device], _doubles(self._layout, one, device)
        values["first"], values["last"], values["begin"], values["end"] = first, last, begin, end
        values["every"], values["edges"] = one.every, self._layout.problem.grid.ndim == 1
        return last - first, values

    def series(self, steps: int) -> Mapping[str, Series]:
        """The results of the first so many steps."""
        return MappingProxyType({name: self._series(one, steps // one.every) for name, one in self._named.items()})

    def _series(self, one: Reduction, count: int) -> Series:
        numbers = np.arange(1, count + 1) * one.every
        mine = [device for device in self._devices.mine if (one.name, device) in self._records]
        of_all = self._devices.of_all({d: self._downloaded(one, d)[:count] for d in mine} if count else {})
        devices, parts = sorted(of_all), [part for _, part in sorted(of_all.items())]
        found = [_put_together(self._layout, one, devices, [part[number] for part in parts]) for number in range(count)]
        return Series(numbers, np.array(found, dtype=np.float64))

    def _downloaded(self, one: Reduction, device: int) -> Doubles:
        records = np.empty((self._total // one.every, _doubles(self._layout, one, device)))
        self._devices.on(device).download(records, self._records[one.name, device])
        return records


def reduction_bytes(layout: Layout, total_steps: int) -> list[int]:
    """Bytes of device memory that the records need on each device. Raises UsageError for other splits than slabs."""
    if layout.problem.reductions and any(parts > 1 for parts in layout.partition.parts[1:]):
        raise UsageError(f"On GPUs reductions need a split along the first axis only, got {layout.partition.parts}.")
    return [
        sum(_bytes(layout, one, device, total_steps) for one in layout.problem.reductions)
        for device in range(layout.devices)
    ]


def _put_together(layout: Layout, one: Reduction, devices: list[int], records: list[Doubles]) -> float:
    """The reduction from one record of each device that has cells of it."""
    lowest, highest = _spans(layout, one.box)
    found = np.full((highest // GROUP + 1 - lowest // GROUP, GROUP), neutral(one.kind))
    whole = np.full(len(found), neutral(one.kind))
    is_whole = np.zeros(len(found), dtype=np.bool_)
    cut: dict[int, NDArray[np.float64]] = {}
    for device, record in zip(devices, records, strict=True):
        first, last, begin, end = _groups(layout, one, device)
        for group in range(first, last):
            place = group - lowest // GROUP
            if begin <= group < end:
                whole[place], is_whole[place] = record[group - first], True
            else:
                at = last - first + (0 if group == first else GROUP)
                ours, theirs = record[at : at + GROUP], found[place]
                lo, hi = _spans(layout, layout.partition.owned(device) & one.box)
                numbers = np.arange(group * GROUP, (group + 1) * GROUP)
                mine = (numbers >= lo) & (numbers <= hi)
                theirs[mine] = ours[mine]
        if layout.problem.grid.ndim == 1:
            _collect_cut(layout, one, device, record[last - first + 2 * GROUP :], cut)
    _add_cut(one, cut, found.reshape(-1), lowest // GROUP * GROUP)
    results = np.where(is_whole, whole, groups(one.kind, found))
    return total(one.kind, results, one.box.size)


def _collect_cut(
    layout: Layout, one: Reduction, device: int, values: Doubles, cut: dict[int, NDArray[np.float64]]
) -> None:
    """The values that a device has of leaves that others have parts of, too (in 1D)."""
    box = layout.partition.owned(device) & one.box
    for number in {box.lo[0] // LEAF, (box.hi[0] - 1) // LEAF}:
        counted, until = max(number * LEAF, one.box.lo[0]), min((number + 1) * LEAF, one.box.hi[0])
        begin, end = max(counted, box.lo[0]), min(until, box.hi[0])
        if begin > counted or end < until:
            at, first = (0 if begin > counted else LEAF), number * LEAF
            kept = cut.setdefault(number, np.zeros(LEAF))
            kept[begin - first : end - first] = values[at + begin - first : at + end - first]


def _add_cut(one: Reduction, cut: Mapping[int, NDArray[np.float64]], found: Doubles, first: int) -> None:
    for number, values in cut.items():
        lo, hi = max(number * LEAF, one.box.lo[0]), min((number + 1) * LEAF, one.box.hi[0])
        place = lo - number * LEAF
        found[number - first] = leaves(one.kind, values[np.newaxis, place : place + hi - lo], place)[0]


def _groups(layout: Layout, one: Reduction, device: int) -> tuple[int, int, int, int]:
    """The groups of which a device has a part, and among these those of which it has all that counts."""
    box = layout.partition.owned(device) & one.box
    lo, hi = _spans(layout, box)
    first, last = lo // GROUP, hi // GROUP + 1
    before, after = _complete(one, box)
    lowest, highest = _spans(layout, one.box)
    begin = first if before and (lo == lowest or lo % GROUP == 0) else first + 1
    end = last if after and (hi == highest or (hi + 1) % GROUP == 0) else last - 1
    return first, last, begin, max(begin, end)


def _complete(one: Reduction, box: Box) -> tuple[bool, bool]:
    """True for the first and for the last leaf of a box if they are whole."""
    if box.ndim > 1:
        return True, True
    lo, hi = box.lo[0], box.hi[0]
    return lo == one.box.lo[0] or lo % LEAF == 0, hi == one.box.hi[0] or hi % LEAF == 0


def _spans(layout: Layout, box: Box) -> tuple[int, int]:
    """The first and the last leaf of a slab, or a box, in numbers over the grid."""
    shape, across = layout.problem.grid.shape, -(-layout.problem.grid.shape[-1] // LEAF)

    def number(cell: tuple[int, ...]) -> int:
        row = 0
        for index, extent in zip(cell[:-1], shape[:-1], strict=True):
            row = row * extent + index
        return row * across + cell[-1] // LEAF

    return number(box.lo), number(tuple(n - 1 for n in box.hi))


def _doubles(layout: Layout, one: Reduction, device: int) -> int:
    return record_doubles(layout.problem, *_groups(layout, one, device)[:2])


def _bytes(layout: Layout, one: Reduction, device: int, total_steps: int) -> int:
    if (layout.partition.owned(device) & one.box).empty:
        return 0
    return max(1, total_steps // one.every) * _doubles(layout, one, device) * 8
