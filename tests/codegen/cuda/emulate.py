"""Run generated kernels without a GPU: as C++ on fibres (`fibres.cpp`), on NumPy memory laid out as on a device."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from host_kernels import COMPILER, kernels, library

from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.norm import NORMS
from peergrid.codegen.cuda.common.program import Launch, Program
from peergrid.codegen.cuda.stream3d.pass_kernel import PassKernel3D
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Array, Box, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory, allocate, fill
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, write_box

LAUNCH = """
static void kernel(const void* const* structs) {{ {entry}({given}); }}
extern "C" const char* launch(int one, int two, const void* const* structs) {{
  return host::{call}, {threads}, {bytes});
}}
"""


@dataclass(frozen=True)
class Padded:
    """A block whose columns begin at a multiple of 32 and whose rows are a multiple of 32 apart."""

    box: Box
    array: Array

    @classmethod
    def of(cls, box: Box, values: Array) -> Padded:
        left = box.lo[-1] // 32 * 32
        shape = (*box.shape[:-1], -(-max(0, box.hi[-1] - left) // 32) * 32)
        size = math.prod(shape)
        raw = np.full(size + 64, np.nan, values.dtype)
        skip = (-raw.ctypes.data % 128) // raw.itemsize
        array = raw[skip : skip + size].reshape(shape)
        array[..., box.lo[-1] - left :][..., : box.shape[-1]] = values
        return cls(box, array)

    @property
    def corner(self) -> tuple[int, ...]:
        """The cell of the array's first element."""
        return (*self.box.lo[:-1], self.box.lo[-1] // 32 * 32)

    @property
    def pitches(self) -> list[int]:
        return [step // self.array.itemsize for step in self.array.strides[:-1]]

    @property
    def origin(self) -> int:
        """The address of cell (0, …, 0)."""
        return self.array.ctypes.data - sum(i * n for i, n in zip(self.corner, self.array.strides, strict=True))

    def view(self, box: Box) -> Array:
        return self.array[box.slices(self.corner)]


def compiled(program: Program, more: Sequence[str] = (), *, together: bool = False) -> Any:
    """The program's launch function; more: the structs that the kernel takes after `Arguments`.

    It takes (blocks, rows of blocks, pointers to the structs), or for devices that run together (devices, blocks,
    pointers to the structs, device by device).
    """
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    kinds = ["Arguments", *more]
    given = ", ".join(f"*static_cast<const {kind}*>(structs[{k}])" for k, kind in enumerate(kinds))
    call = f"together(kernel, structs, {len(kinds)}, one, two" if together else "launch(kernel, structs, one, two"
    ending = LAUNCH.format(
        entry=program.entry, given=given, call=call, threads=program.threads, bytes=program.shared_bytes
    )
    launch = ctypes.CDLL(str(library(kernels(program.source) + ending))).launch
    launch.restype = ctypes.c_char_p
    return launch


def pointers(tables: Sequence[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * len(tables))(*(table.ctypes.data for table in tables))


@dataclass
class Device:
    """A device's memory twice: as the reference kernel wants it, and as generated kernels do, with their arguments."""

    layout: Layout
    number: int
    total_steps: int
    memory: DeviceMemory = field(init=False)
    padded: dict[str, tuple[Padded, ...]] = field(init=False, default_factory=dict)
    scratch: list[Padded] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        problem = self.problem
        self.memory = allocate(self.layout, self.number)
        for name, described in problem.fields.items():
            fill(self.layout, self.memory, name, described.global_array())
        for name, described in problem.fields.items():
            if described.full:
                block = self.memory.block(name, 0)
                fresh = [np.full_like(block.array, np.nan)] if name in problem.state else []
                self.padded[name] = tuple(Padded.of(block.box, values) for values in (block.array, *fresh))
        self.expected_traces = np.full((len(problem.receivers), self.total_steps), np.nan, problem.grid.dtype)
        self.traces = self.expected_traces.copy()

    @property
    def problem(self) -> Problem:
        return self.layout.problem

    @property
    def box(self) -> Box:
        return self.layout.partition.owned(self.number)

    @property
    def recorded(self) -> tuple[int, ...]:
        return tuple(k for k, receiver in enumerate(self.problem.receivers) if receiver.cell in self.box)

    def arguments(self, source: int, step: int, scratch: Sequence[str] = ()) -> np.ndarray[Any, Any]:
        """`Arguments` without tiles; scratch: the field of each scratch block."""
        fields = Arguments(self.problem, len(scratch))
        given = np.zeros((), fields.dtype)
        for number, name in enumerate(fields.fields):
            row, block = given["fields"][number], self.memory.block(name, 0)
            if block.field.full:
                row["pitch"][: self.problem.grid.ndim - 1] = self.padded[name][0].pitches
                row["slot"][: len(self.padded[name])] = [padded.origin for padded in self.padded[name]]
            else:
                row["slot"][0] = block.array.ctypes.data - block.origin[0] * block.array.itemsize
        for number, name in enumerate(fields.signals):
            samples = self.problem.signals[name].samples
            given["signals"][number] = (samples.ctypes.data, len(samples))
        for number, table in enumerate(self.problem.tables.values(), start=len(fields.signals)):
            given["signals"][number] = (table.values.ctypes.data, len(table))
        given["params"][: len(fields.params)] = list(self.problem.params.values())
        given["corners"] = fields.corners
        given["traces"], given["total_steps"], given["step"] = self.traces.ctypes.data, self.total_steps, step
        given["source"], given["target"] = source, 1 - source
        self.scratch = [Padded.of(self.padded[name][0].box, self.memory.block(name, 0).array) for name in scratch]
        given["scratch"][: len(scratch)] = [padded.origin for padded in self.scratch]
        given["lo"][: self.box.ndim], given["hi"][: self.box.ndim] = self.box.lo, self.box.hi
        return given

    def reference(self, source: int, step: int, steps: int) -> None:
        kernel = ReferenceKernel(self.problem)
        kernel(self.memory, Pass(self.box, source, 1 - source, step, steps, self.expected_traces, self.recorded))

    def agrees(self, slot: int) -> bool:
        """Whether both memories hold the same bits on the device's own cells, and both traces."""
        for name in self.problem.state:
            cells = write_box(self.problem, name, self.box)
            if not cells.empty:
                expected, found = self.memory.block(name, slot).view(cells), self.padded[name][slot].view(cells)
                if not np.array_equal(expected, found, equal_nan=True):
                    return False
        return np.array_equal(self.expected_traces, self.traces, equal_nan=True)


@dataclass(frozen=True)
class Outcome:
    """What a pass on one device gave."""

    device: Device
    launches: tuple[Launch, ...]
    norm_rows: Array | None

    @cached_property
    def entries(self) -> set[str]:
        return {launch.program.entry for launch in self.launches}

    @property
    def agrees(self) -> bool:
        return self.device.agrees(1)


def advance(problem: Problem, kernel: PassKernel1D | PassKernel | PassKernel3D, parts: Index | None = None,
            device: int = 0, step: int = 3, slots: int = 4) -> Outcome:  # fmt: skip
    """One pass on one device of a partition, by the reference and by the generated kernels."""
    steps = kernel.steps
    parts = parts or (1,) * problem.grid.ndim
    one = Device(Layout(problem, Partition(problem.grid, parts), (steps,)), device, step + steps)
    one.reference(0, step, steps)
    given, box = one.arguments(0, step), one.box
    launches = kernel.launches(box, slots, one.recorded)
    norms = np.zeros((), NORMS)
    bands, blocks = -(-box.hi[0] // NORM_ROWS), -(-box.hi[-1] // 8)
    partial = np.full((steps, bands, blocks), np.nan, problem.grid.dtype)
    rows = np.full((steps, bands), np.nan)
    norms["partial"], norms["rows"] = partial.ctypes.data, rows.ctypes.data
    norms["pitch"], norms["plane"], norms["row_plane"] = blocks, bands * blocks, bands

    def start(program: Program, across: int, high: int = 1) -> None:
        launch = compiled(program, ["Norms"] if kernel.norm else [])
        fault = launch(across, high, pointers([given, norms]))
        assert fault is None, fault

    for launch in launches:
        given["regions"], given["receivers"] = launch.regions.ctypes.data, launch.receivers.ctypes.data
        given["count"] = len(launch.regions)
        start(launch.program, launch.blocks)
    if kernel.norm:
        start(kernel.sums, bands - box.lo[0] // NORM_ROWS, steps)
    return Outcome(one, launches, rows[:, box.lo[0] // NORM_ROWS :] if kernel.norm else None)
