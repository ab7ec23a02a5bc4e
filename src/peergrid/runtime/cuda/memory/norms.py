"""Memory for the norm of every step's change: sums of blocks of cells for two passes, of rows for the whole run.

While those of one pass are added up the next pass, which writes the other slot of the state, leaves its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.norm import NORMS
from peergrid.codegen.norm import NORM_ALIGN, NORM_COLUMNS, NORM_ROWS, total
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.schedule import Layout

SLOTS = 2  # of the state, which passes write alternately


class NormMemory:
    """The sums of one field on every device.

    A device's rows have to begin at a multiple of 24, so that blocks of cells do not cross devices, and so has every
    part of a device's box that is computed by itself. Raises UsageError where that is not so.
    """

    def __init__(self, layout: Layout, devices: Devices, field: str, total_steps: int) -> None:
        self.field = field
        self._layout, self._devices, self._total = layout, devices, total_steps
        _check(layout, field)
        needed = {device: _bytes(layout, device, total_steps) for device in devices.mine}
        self._partial = {d: [devices.allocate(d, blocks) for _ in range(SLOTS)] for d, (blocks, _) in needed.items()}
        self._rows = {device: devices.allocate(device, rows) for device, (_, rows) in needed.items()}

    def structs(self, device: int, box: Box) -> tuple[NDArray[Any], ...]:
        """The arguments of a device's kernels for a part of its cells: one for each slot, each of shape (1,)."""
        owned = self._owned(device)
        if not _whole_blocks(box, owned):
            raise UsageError(
                f"The norm of every step is summed up in blocks of {NORM_ROWS} × {NORM_COLUMNS} cells, but {box} of "
                f"{owned} is computed by itself; make the layout with align = {NORM_ALIGN}."
            )
        return tuple(self._struct(device, partial) for partial in self._partial[device])

    def norms(self, steps: int) -> NDArray[np.float64]:
        """The norms of the first so many steps."""
        found = {}
        for device in self._devices.mine:
            rows = np.empty((max(1, self._total), self._extent(device)[0]))
            self._devices.on(device).download(rows, self._rows[device])
            found[device] = rows[:steps]
        return total(np.concatenate([rows for _, rows in sorted(self._devices.of_all(found).items())], axis=1))

    def _struct(self, device: int, partial: int) -> NDArray[Any]:
        owned, (bands, blocks) = self._owned(device), self._extent(device)
        first, left = owned.lo[0] // NORM_ROWS, owned.lo[1] // NORM_COLUMNS
        values = np.zeros(1, NORMS)
        values["partial"] = partial - (first * blocks + left) * self._layout.problem.itemsize
        values["rows"] = self._rows[device] - first * 8
        values["pitch"], values["plane"] = blocks, bands * blocks
        values["row_plane"], values["follow"] = bands, 1
        return values

    def _owned(self, device: int) -> Box:
        return self._layout.partition.owned(device)

    def _extent(self, device: int) -> tuple[int, int]:
        return _extent(self._owned(device))


def norm_bytes(layout: Layout, field: str, total_steps: int) -> list[int]:
    """Bytes of device memory that the norms of so many steps need on each device; raises as `NormMemory` does."""
    _check(layout, field)
    needed = (_bytes(layout, device, total_steps) for device in range(layout.devices))
    return [SLOTS * blocks + rows for blocks, rows in needed]


def _bytes(layout: Layout, device: int, total_steps: int) -> tuple[int, int]:
    """Of the sums of blocks for one pass, and of the sums of rows for all steps."""
    bands, blocks = _extent(layout.partition.owned(device))
    return max(layout.blocks) * bands * blocks * layout.problem.itemsize, max(1, total_steps) * bands * 8


def _extent(owned: Box) -> tuple[int, int]:
    """Blocks of cells along both axes."""
    rows, columns = owned.shape
    return -(-rows // NORM_ROWS), -(-columns // NORM_COLUMNS)


def _whole_blocks(box: Box, owned: Box) -> bool:
    """True where a part of an owned box begins and ends where blocks of cells or the owned box do."""
    ends = zip(NORM_ALIGN, box.lo, box.hi, owned.lo, owned.hi, strict=True)
    return all((lo == first or lo % unit == 0) and (hi == last or hi % unit == 0) for unit, lo, hi, first, last in ends)


def _check(layout: Layout, field: str) -> None:
    problem = layout.problem
    if field not in problem.state or problem.grid.ndim != 2:
        raise UsageError(
            f"The norm of every step's change is that of one of the fields of a 2D grid that change "
            f"({', '.join(problem.state)}), got '{field}' of a {problem.grid.ndim}D grid."
        )
    if layout.partition.parts[1] != 1:
        raise UsageError(f"The norm of every step needs a split along rows only, got {layout.partition.parts}.")
    for device in range(layout.devices):
        first = layout.partition.owned(device).lo[0]
        if first % NORM_ROWS:
            raise UsageError(
                f"The norm of every step needs devices whose rows begin at multiples of {NORM_ROWS}; "
                f"device {device} begins at row {first}: use a multiple of "
                f"{NORM_ROWS * layout.devices} rows, or fewer devices."
            )
