"""The product on GPUs, by `products.cu`: a device has its rows, and the part of the vector that they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.program import Program
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.sparse.matrix import CsrMatrix, Numbers
from peergrid.sparse.sliced import SLICE, SlicedMatrix
from peergrid.stencil import Problem

THREADS, ROUND_BYTES, SPARE = 256, 8192, 64
MOST = (1 << 32) - ROUND_BYTES  # places of nonzeros on a GPU
MATRIX = np.dtype([("starts", "<u8"), ("columns", "<u8"), ("values", "<u8"), ("first", "<i8")])


@dataclass(frozen=True, eq=False)
class GpuProduct:
    """An `OwnKernel` for `products`."""

    matrix: CsrMatrix | SlicedMatrix
    problem: Problem

    @cached_property
    def program(self) -> Program:
        text = resources.files("peergrid.sparse").joinpath("products.cu").read_text()
        source, shared = f"{Arguments(self.problem).source}\n{text}", ROUND_BYTES + SPARE * self.problem.itemsize
        if isinstance(self.matrix, SlicedMatrix):
            return Program(source, "multiply_slices", THREADS, 0)
        return Program(source, "multiply_rows", THREADS, shared)

    @property
    def counts_steps(self) -> bool:
        return False

    def bytes(self, owned: Box) -> int:
        starts, columns, values = self._part(owned)
        return 4 * (len(starts) + len(columns)) + values.nbytes

    def blocks(self, box: Box) -> int:
        lo = box.lo[0] // SLICE * SLICE if isinstance(self.matrix, SlicedMatrix) else box.lo[0]
        return -(-(box.hi[0] - lo) // THREADS)

    def tables(self, devices: Devices, device: int, owned: Box) -> NDArray[Any]:
        """Raises UsageError for more nonzeros than a GPU takes."""
        starts, columns, values = self._part(owned)
        if len(values) > MOST:
            raise UsageError(f"A GPU takes up to {MOST:,} nonzeros, got {len(values):,}; use more GPUs.")
        found = np.zeros(1, MATRIX)
        parts = ((starts - starts[0]).astype(np.uint32), columns.astype(np.uint32, copy=False), values)
        for name, part in zip(("starts", "columns", "values"), parts, strict=True):
            address = devices.allocate(device, part.nbytes)
            devices.driver.upload(address, part)
            found[name] = address
        found["first"] = self._span(owned)[0]
        return found

    def _part(self, owned: Box) -> tuple[Numbers, Numbers, Numbers]:
        """The starts, columns and values of the rows, or slices, of a device."""
        matrix, (first, last) = self.matrix, self._span(owned)
        starts = matrix.starts[first : last + 1]
        places = slice(int(starts[0]), int(starts[-1]))
        return starts, matrix.columns[places], matrix.values[places]

    def _span(self, owned: Box) -> tuple[int, int]:
        """The rows, or slices, from and to."""
        if isinstance(self.matrix, SlicedMatrix):
            return owned.lo[0] // SLICE, -(-owned.hi[0] // SLICE)
        return owned.lo[0], owned.hi[0]
