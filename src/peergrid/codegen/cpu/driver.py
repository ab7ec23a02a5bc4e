"""The loop that carries a program's tables out (see `tables`). Compiled once for all problems by `jit.driver`.

Plain loops over integers on purpose: this text is what Numba compiles. The address of every operand is computed once
for the first row of its work; from row to row it moves on, and at the end of a rolling window back to its start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.jit import address_of, fence, invoke

Table = NDArray[np.int64]
NEVER = 1 << 62


def place(operands: Table, storages: Table, scratch: int, moved: int, moving: Table) -> None:
    """Fill `moving`: for every operand its address, move per row, window's limit and length, bytes per line."""
    for i in range(operands.shape[0]):
        s = operands[i, 0]
        depth = storages[s, 4]
        row = operands[i, 1] % depth if depth > 0 else operands[i, 1]
        start = storages[s, 0] + storages[s, 5] * scratch + storages[s, 6] * moved
        start += operands[i, 2] * storages[s, 2] + operands[i, 3] * storages[s, 3]
        moving[0, i] = start + row * storages[s, 1]
        moving[1, i] = storages[s, 1]
        moving[2, i] = start + depth * storages[s, 1] if depth > 0 else NEVER
        moving[3, i] = depth * storages[s, 1]
        moving[4, i] = storages[s, 2]


def advance(rows: int, count: int, current: Table, ahead: Table, limit: Table, length: Table) -> None:
    """Move the addresses of a work's operands by some rows, fewer than a window has."""
    for i in range(count):
        address = current[i] + rows * ahead[i]
        current[i] = address - length[i] if address >= limit[i] else address


def stream(
    functions: Table,
    tiles: Table,
    nodes: Table,
    bands: Table,
    works: Table,
    operands: Table,
    storages: Table,
    scratch: int,
    moved: int,
    at_once: int,
) -> None:
    """Advance all tiles.

    scratch: address of the windows; moved: bytes from step 0 to the first step in time series; at_once: rows by which
    the front moves.
    """
    moving = np.empty((5, operands.shape[0]), np.int64)
    place(operands, storages, scratch, moved, moving)
    current, ahead, limit, length = moving[0], moving[1], moving[2], moving[3]
    current_at, lines_at = address_of(moving[0]), address_of(moving[4])
    band_of = nodes[:, 1].copy()
    for tile in range(tiles.shape[0]):
        for front in range(tiles[tile, 0], tiles[tile, 1], at_once):
            for node in range(tiles[tile, 2], tiles[tile, 3]):
                row = front - nodes[node, 0]
                end = row + at_once
                while row < end:
                    band = band_of[node]
                    if band < nodes[node, 2] and row >= bands[band, 1]:
                        band += 1
                        band_of[node] = band
                    if band == nodes[node, 2] or end <= bands[band, 0]:
                        break
                    row = max(row, bands[band, 0])
                    several = bands[band, 5] > bands[band, 4] and row + at_once <= min(end, bands[band, 1])
                    kind = 4 if several else 2
                    for work in range(bands[band, kind], bands[band, kind + 1]):
                        first, last = works[work, 1], works[work, 2]
                        function = functions[works[work, 0]]
                        invoke(function, current_at + 8 * first, lines_at + 8 * first, works[work, 3], works[work, 4])
                    rows = at_once if several else 1
                    first, last = works[bands[band, 2], 1], works[max(bands[band, 3], bands[band, 5]) - 1, 2]
                    advance(
                        rows,
                        last - first,
                        current[first:last],
                        ahead[first:last],
                        limit[first:last],
                        length[first:last],
                    )
                    row += rows
    fence()
