"""Run generated kernels without a GPU: as C++ on fibres (`warp_shim.h`), on NumPy memory laid out as on a device."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.norm import NORMS
from peergrid.codegen.cuda.pass_kernel import Launch, PassKernel, Program
from peergrid.codegen.cuda.stream_parts import PRIMITIVES
from peergrid.grid import Array, Box
from peergrid.grid.partition import Partition
from peergrid.runtime.memory import allocate, fill
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, write_box

HERE = Path(__file__).parent
PACK = "template <int N> struct __align__(N * sizeof(R)) Pack { R v[N]; };\n"


@dataclass(frozen=True)
class Padded:
    """A block whose columns begin at a multiple of 32 and whose rows are a multiple of 32 apart."""

    box: Box
    array: Array

    @classmethod
    def of(cls, box: Box, values: Array) -> Padded:
        left = box.lo[1] // 32 * 32
        pitch = -(-(box.hi[1] - left) // 32) * 32
        raw = np.full(box.shape[0] * pitch + 64, np.nan, values.dtype)
        skip = (-raw.ctypes.data % 128) // raw.itemsize
        array = raw[skip : skip + box.shape[0] * pitch].reshape(box.shape[0], pitch)
        array[:, box.lo[1] - left :][:, : box.shape[1]] = values
        return cls(box, array)

    @property
    def left(self) -> int:
        return self.box.lo[1] // 32 * 32

    @property
    def origin(self) -> int:
        """The address of cell (0, 0)."""
        itemsize = self.array.itemsize
        return self.array.ctypes.data - (self.box.lo[0] * self.array.shape[1] + self.left) * itemsize

    def view(self, box: Box) -> Array:
        rows = slice(box.lo[0] - self.box.lo[0], box.hi[0] - self.box.lo[0])
        return self.array[rows, box.lo[1] - self.left : box.hi[1] - self.left]


def compiled(program: Program, directory: Path, more: str = "") -> ctypes.CDLL:
    """The program as a shared library with one function `launch(arguments, blocks, rows of blocks, more)`."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    given = f", *static_cast<const {more}*>(more)" if more else ""
    text = program.source.replace(PRIMITIVES, PACK)
    text = f"""#include "{HERE / "warp_shim.h"}"
{text}
extern "C" const char* launch(const Arguments* a, int blocks, int high, const void* more) {{
  return shim::launch(blocks, high, {program.threads}, [=] {{ {program.entry}(*a{given}); }});
}}
"""
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    source, library = directory / f"{name}.cpp", directory / f"{name}.so"
    if not library.exists():
        source.write_text(text)
        options = ["-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run([compiler, *options, "-o", library, source], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.launch.restype = ctypes.c_char_p
    return loaded


@dataclass(frozen=True)
class Outcome:
    """The state after a pass and the traces, from the reference and from the generated kernels."""

    expected: dict[str, Array]
    found: dict[str, Array]
    expected_traces: Array
    found_traces: Array
    norm_rows: Array | None
    launches: tuple[Launch, ...]


def advance(problem: Problem, kernel: PassKernel, directory: Path, parts: tuple[int, int] = (1, 1), device: int = 0,
            step: int = 3, slots: int = 4) -> Outcome:  # fmt: skip
    """One pass on one device of a partition, by both."""
    steps = kernel.shape.steps
    layout = Layout(problem, Partition(problem.grid, parts), (steps,))
    memory = allocate(layout, device)
    for name, described in problem.fields.items():
        fill(layout, memory, name, described.global_array())
    box = layout.partition.owned(device)
    recorded = tuple(k for k, r in enumerate(problem.receivers) if r.cell in box)
    expected_traces = np.full((len(problem.receivers), step + steps), np.nan, problem.grid.dtype)
    found_traces = expected_traces.copy()
    ReferenceKernel(problem)(memory, box, 0, 1, step, steps, expected_traces, recorded)
    fields = Arguments(problem)
    given = np.zeros((), fields.dtype)
    keep: list[object] = []
    targets: dict[str, Padded] = {}
    for number, name in enumerate(fields.fields):
        block = memory.block(name, 0)
        row = given["fields"][number]
        if block.field.full:
            padded = Padded.of(block.box, block.array)
            row["pitch"][0] = padded.array.shape[1]
            row["slot"][0] = padded.origin
            if name in problem.state:
                targets[name] = Padded.of(block.box, np.full_like(block.array, np.nan))
                row["slot"][1] = targets[name].origin
            keep.append(padded)
        else:
            axis = block.field.axes[0]
            row["slot"][0] = block.array.ctypes.data - block.box.lo[axis] * block.array.itemsize
    for number, name in enumerate(fields.signals):
        samples = problem.signals[name].samples
        given["signals"][number] = (samples.ctypes.data, len(samples))
    given["params"][: len(fields.params)] = list(problem.params.values())
    given["traces"], given["total_steps"], given["step"] = found_traces.ctypes.data, step + steps, step
    given["source"], given["target"] = 0, 1
    given["lo"][:2], given["hi"][:2] = box.lo, box.hi
    launches = kernel.launches(box, slots, recorded)
    norms = np.zeros((), NORMS)
    bands, blocks = -(-box.hi[0] // 32), -(-box.hi[1] // 8)
    partial = np.full((steps, bands, blocks), np.nan, problem.grid.dtype)
    rows = np.full((steps, bands), np.nan)
    norms["partial"], norms["rows"] = partial.ctypes.data, rows.ctypes.data
    norms["pitch"], norms["plane"], norms["row_plane"] = blocks, bands * blocks, bands
    kind = "Norms" if kernel.norm else ""

    def start(program: Program, across: int, high: int = 1) -> None:
        start = compiled(program, directory, kind).launch
        pointers = [ctypes.c_void_p(table.ctypes.data) for table in (given, norms)]
        fault = start(pointers[0], across, high, pointers[1])
        assert fault is None, fault

    for launch in launches:
        given["regions"], given["receivers"] = launch.regions.ctypes.data, launch.receivers.ctypes.data
        given["count"] = len(launch.regions)
        start(launch.program, launch.blocks)
    if kernel.norm:
        start(kernel.sums, bands - box.lo[0] // 32, steps)
    written = {name: write_box(problem, name, box) for name in problem.state}
    return Outcome(
        {name: memory.block(name, 1).view(cells) for name, cells in written.items()},
        {name: targets[name].view(cells) for name, cells in written.items()},
        expected_traces,
        found_traces,
        rows[:, box.lo[0] // 32 :] if kernel.norm else None,
        launches,
    )
