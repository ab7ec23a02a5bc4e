"""Tensor copies: which shapes they can serve, and the maps of the fields that the rings of a kernel are filled from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.grid import Index

TENSOR = layout_of("tensor_copy.cuh", "Tensor")
"""A field's blocks of memory."""
ELEMENT = 8  # bytes of an element of a map
MOST = 256  # elements of a copy along an axis
FAR = 1 << 28  # an index that no cell has

Encode = Callable[[int, Sequence[int], Sequence[int], Sequence[int]], NDArray[np.uint64]]
"""The maker of a map from an address, extents, strides and a box, as `CudaDriver.tensor_map`."""


@dataclass(frozen=True)
class Stored:
    """The cells of a field in memory: the first one, whose column is a multiple of 32; planes and rows."""

    first: Index
    planes: int
    rows: int


def copied(rings: Rings) -> bool:
    """True if tensor copies can fill all rings: none is wider than a copy, and cells beyond periodic edges, which come
    a clock later, or two where the barrier is split, have the time.
    """
    shape, size = rings.shape, rings.problem.itemsize
    for ring in rings.loaded:
        rows, columns = ring.extents(shape)
        if columns * size > MOST * ELEMENT or rows > MOST:
            return False
    return shape.ahead > 1 + rings.split_barrier or not any(rings.problem.grid.periodic)


def tensors(rings: Rings, given: Any, stored: Callable[[str], Stored], encode: Encode) -> tuple[NDArray[Any], ...]:
    """The last struct of a launch, if its shape has such copies; given: its arguments; stored: where a field is."""
    if not rings.shape.tensor:
        return ()
    names, found = list(rings.whole.fields), np.zeros(len(rings.loaded), TENSOR)
    for place, ring in zip(found, rings.loaded, strict=True):
        name, size = ring.value.field, rings.problem.itemsize
        height, width = ring.extents(rings.shape)
        number, cells = names.index(name), stored(name)
        field = given["fields"][number]
        planes, rows = (int(pitch) * size for pitch in field["pitch"])
        block = rings.version(name, after=False)
        begin = cells.first[0] * planes + cells.first[1] * rows + cells.first[2] * size
        box = (width * size // ELEMENT, height, 1)
        place["first"] = cells.first
        if not cells.planes * cells.rows:  # a field without cells here: all copies lie beyond what the map knows
            place["first"] = FAR
            place["map"] = encode(int(given["regions"]), (2, 1, 1), (16, 16), box)
            continue
        for slot in range(2):
            address = given["scratch"][block] if block >= 0 else field["slot"][slot]
            extents = rows // ELEMENT, cells.rows, cells.planes
            place["map"][slot] = encode((int(address) + begin) % (1 << 64), extents, (rows, planes), box)
    return (found,)
