"""The loop that carries a program's tables out (see `tables`). Compiled once for all problems by `jit.driver`.

Plain loops over integers on purpose: this text is what Numba compiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.jit import address_of, invoke

Table = NDArray[np.int64]


def stream(
    functions: Table,
    tiles: Table,
    nodes: Table,
    works: Table,
    operands: Table,
    storages: Table,
    scratch: int,
    moved: int,
) -> None:
    """Advance all tiles. scratch: address of the windows; moved: bytes from step 0 to the first step in time series."""
    bases = np.empty(storages.shape[0], np.int64)
    slots = np.empty(storages.shape[0], np.int64)
    pointers = np.empty(operands.shape[0] + 1, np.int64)
    strides = np.empty(operands.shape[0] + 1, np.int64)
    pointers_at = address_of(pointers)
    strides_at = address_of(strides)
    for s in range(storages.shape[0]):
        bases[s] = storages[s, 0] + storages[s, 5] * scratch + storages[s, 6] * moved
    for tile in range(tiles.shape[0]):
        for front in range(tiles[tile, 0], tiles[tile, 1]):
            for s in range(storages.shape[0]):
                depth = storages[s, 4]
                slots[s] = front % depth if depth > 0 else front
            for node in range(tiles[tile, 2], tiles[tile, 3]):
                row = front - nodes[node, 0]
                for work in range(nodes[node, 1], nodes[node, 2]):
                    if works[work, 0] <= row < works[work, 1]:
                        first = works[work, 3]
                        for i in range(works[work, 4]):
                            s = operands[first + i, 0]
                            line = slots[s] + operands[first + i, 1]
                            if line < 0:
                                line += storages[s, 4]
                            pointers[i] = (
                                bases[s]
                                + line * storages[s, 1]
                                + operands[first + i, 2] * storages[s, 2]
                                + operands[first + i, 3] * storages[s, 3]
                            )
                            strides[i] = storages[s, 2]
                        invoke(functions[works[work, 2]], pointers_at, strides_at, works[work, 5], works[work, 6])
