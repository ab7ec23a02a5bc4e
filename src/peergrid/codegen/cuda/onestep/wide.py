"""Several cells per thread with 16-byte accesses: the kernel for large regions of one variant.

A thread computes W neighbouring columns (W values are 16 bytes, aligned) of a few rows, and loads every row that any
of these cells reads once. Rows are numbered by the last axis but one. Blocks cover the region in C order, where a step
is one kernel backwards in every other step.

Values loaded for columns outside the region are never stored; rows beyond it are not loaded at all. Memory has room
on both sides of every field for the columns that a border thread touches (see `runtime/cuda/memory/blocks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import plus
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.onestep.body import Body, Reader
from peergrid.codegen.cuda.onestep.groups import Group, groups
from peergrid.codegen.cuda.onestep.naming import Naming, coordinates
from peergrid.codegen.cuda.onestep.regions import Variant
from peergrid.codegen.cuda.onestep.side_by_side import Loaded, SideBySide
from peergrid.grid import Box
from peergrid.stencil.expr import Read

LANES, LINES = 32, 4
THREADS = LANES * LINES

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}) {name}(const __grid_constant__ Arguments a) {{
  constexpr int ROWS = {rows};
{place}
{loads}
{outputs}
{cells}
{stores}
}}
"""
CELLS = """#pragma unroll
  for (int r = 0; r < ROWS; ++r) {{
#pragma unroll
    for (int v = 0; v < W; ++v) {{
{statements}
    }}
  }}"""

FUNCTION = """\
__device__ __forceinline__ void {name}(const Arguments& a, const int i, const int j, const int k, const int low,
    const int high, const long long step{more}) {{
  constexpr int ROWS = 1;
  const int top = j + 1, r = 0;
{loads}
{outputs}
{cells}
{stores}
}}
"""
ROW_OF_CELLS = """#pragma unroll
  for (int v = 0; v < W; ++v) {{
{statements}
  }}"""


@dataclass(frozen=True)
class Patch:
    """The values of a field that a thread holds for one offset along the first of three axes.

    rows, columns: for each row the columns needed, relative to the thread's first cell.
    """

    field: str
    plane: int
    columns: dict[int, frozenset[int]]

    @property
    def first_row(self) -> int:
        return min(self.columns)

    @property
    def rows(self) -> int:
        return max(self.columns) - self.first_row + 1

    @cached_property
    def first_column(self) -> int:
        return min(min(columns) for columns in self.columns.values())

    @cached_property
    def width(self) -> int:
        return max(max(columns) for columns in self.columns.values()) - self.first_column + 1

    @property
    def values(self) -> int:
        return sum(len(columns) for columns in self.columns.values())


@dataclass(frozen=True)
class WideKernel:
    """The kernel of one variant; gpu: the model of the GPU; most_rows: most rows of a thread."""

    arguments: Arguments
    group: Group
    variant: Variant
    gpu: GpuModel
    most_rows: int = 4

    @cached_property
    def body(self) -> Body:
        return Body(self.arguments, self.variant)

    @cached_property
    def naming(self) -> Naming:
        return Naming(self.arguments)

    @property
    def ndim(self) -> int:
        return self.arguments.problem.grid.ndim

    @cached_property
    def rows(self) -> int:
        """Rows per thread: as many as registers hold without pressure."""
        if self.ndim == 1:
            return 1
        return next((n for n in (4, 2) if n <= self.most_rows and self._values(n) <= self.gpu.thread_values), 1)

    @cached_property
    def values(self) -> int:
        """The values that a thread reads and makes in one row."""
        return self._values(1)

    def blocks(self, box: Box) -> int:
        """The number of thread blocks that cover a region."""
        lo, hi = box.lo[-1], box.hi[-1]
        columns = -(-hi // self.arguments.width) - lo // self.arguments.width
        blocks = -(-columns // LANES)
        for axis in range(self.ndim - 1):
            blocks *= -(-box.shape[axis] // (LINES * self.rows)) if axis == self.ndim - 2 else box.shape[axis]
        return blocks if self.ndim > 1 else -(-columns // THREADS)

    def source(self, name: str) -> str:
        """The C++ text of the kernel."""
        if self._streams and self.arguments.pitched:  # compilers would keep the offsets of all reads in registers
            return replace(self, arguments=replace(self.arguments, pitched=())).source(name)
        place = _indent(self._place(), 2)
        return KERNEL.format(name=name, threads=THREADS, rows=self.rows, place=place, **self._parts(CELLS, 6))

    def function(self, name: str) -> str:
        """The C++ text of a device function for W cells of a 3D row, of which those in columns low <= k < high count;
        of a kernel with one row for each thread.
        """
        more = ", const short* const places" if self.arguments.varying else ""
        return FUNCTION.format(name=name, more=more, **self._parts(ROW_OF_CELLS, 4))

    def _parts(self, form: str, depth: int) -> dict[str, str]:
        """The parts of a kernel; form: of the loop over cells; depth: spaces before their statements."""
        return {
            "loads": _indent(self._pointers() if self._streams else self._loads(), 2),
            "outputs": _indent((f"R {self._out(name)}[ROWS][W];" for name in self.variant.stored), 2),
            "cells": _indent(self._side_by_side(), 2)
            if self._streams
            else form.format(statements=self._statements(depth)),
            "stores": _indent(self._stores(), 2),
        }

    @cached_property
    def _streams(self) -> bool:
        """True if values are loaded where they are used: registers do not hold all."""
        return self.values * self.arguments.problem.itemsize > self.gpu.thread_bytes and self.ndim > 1

    def _statements(self, depth: int) -> str:
        read = self._reader(self.rows)
        results = [f"{self._out(name)}[r][v] = {self.body.result(name, read)};" for name in self.variant.stored]
        return _indent([*self.body.statements(read, self._cell("r", "v")), *results], depth)

    def _cell(self, row: str, column: str) -> tuple[str, ...]:
        """The texts of the index of one of a thread's cells."""
        *planes, line = coordinates(self.ndim)[:-1] or ("",)
        return (*planes, *([f"{line} + {row}"] if line else []), f"{coordinates(self.ndim)[-1]} + {column}")

    def _side_by_side(self) -> Iterator[str]:
        """The statements of all cells of a thread, which has one row."""
        nested = self.gpu.statement_operations
        places = self._loaded, self._load, lambda name, v: f"{self._out(name)}[0][{v}]"
        return SideBySide(self.body, self.arguments.width, nested, partial(self._cell, "0"), *places).lines()

    def _loaded(self, node: Read, v: int) -> tuple[Loaded, int]:
        """The load that has the value of a read of cell number v, and the element of it."""
        plane, row, column, (_, along) = self._offsets(node)
        if not along:
            return Loaded(node.field, plane, row, column, wide=False), 0
        chunk, element = divmod(column + v, self.arguments.width)
        return Loaded(node.field, plane, row, chunk * self.arguments.width, wide=True), element

    def _load(self, loaded: Loaded, name: str) -> str:
        """The statement that loads values under a name."""
        patch = Patch(loaded.field, loaded.plane, {loaded.row: frozenset((loaded.column,))})
        start = plus(self._start(patch, loaded.row), loaded.column)
        return f"R {name}[W]; load({name}, {start});" if loaded.wide else f"const R {name} = __ldg({start});"

    def _pointers(self) -> Iterator[str]:
        for name in sorted({node.field for node in self.body.loads()}):
            block = self.naming.block(name, self.group.found(name))
            yield f"const R* const from_{self.naming.field(name)} = {block};"

    def _start(self, patch: Patch, row: int) -> str:
        """The address of a thread's first column in a row."""
        offset = self.naming.at(patch.field, self._index(patch, row), self.group.found(patch.field))
        return f"from_{self.naming.field(patch.field)} + {offset}"

    def _values(self, rows: int) -> int:
        outputs = len(self.variant.stored) * rows * self.arguments.width
        return outputs + sum(patch.values for patch in self._patches(rows).values())

    def _patches(self, rows: int) -> dict[tuple[str, int], Patch]:
        needed: dict[tuple[str, int], dict[int, set[int]]] = {}
        for node in self.body.loads():
            plane, row, column, along = self._offsets(node)
            entry = needed.setdefault((node.field, plane), {})
            for r in range(rows if along[0] else 1):
                columns = entry.setdefault(row + r, set())
                columns.update(column + v for v in range(self.arguments.width if along[1] else 1))
        return {
            key: Patch(*key, {row: frozenset(columns) for row, columns in sorted(entry.items())})
            for key, entry in needed.items()
        }

    def _offsets(self, node: Read) -> tuple[int, int, int, tuple[bool, bool]]:
        """Plane, row and column of a read, 0 where the field does not vary; whether it varies with rows, columns."""
        axes = self.arguments.problem.fields[node.field].axes
        offset = [o if axis in axes else 0 for axis, o in enumerate(node.offset)]
        plane, row, column = [0] * (3 - self.ndim) + offset
        return plane, row, column, (self.ndim - 2 in axes, self.ndim - 1 in axes)

    def _reader(self, rows: int) -> Reader:
        patches = self._patches(rows)

        def read(node: Read) -> str:
            plane, row, column, (with_rows, with_columns) = self._offsets(node)
            patch = patches[node.field, plane]
            at_row = plus("r", row - patch.first_row) if with_rows else "0"
            at_column = plus("v", column - patch.first_column) if with_columns else "0"
            return f"{self._array(patch)}[{at_row}][{at_column}]"

        return read

    def _array(self, patch: Patch) -> str:
        sign = "" if patch.plane == 0 else ("_m" if patch.plane < 0 else "_p") + str(abs(patch.plane))
        return f"{self.naming.field(patch.field)}{sign}"

    def _out(self, name: str) -> str:
        return f"new_{self.naming.field(name)}"

    def _block(self) -> str:
        """The number of this block, counted backwards in every other step where a step is one kernel.

        What a step has read and written last is what the next one finds in the L2 cache (decision 036).
        """
        alone = len(groups(self.arguments.problem)) == 1
        return "a.target ? gridDim.x - 1 - blockIdx.x : blockIdx.x" if alone else "blockIdx.x"

    def _place(self) -> Iterator[str]:
        """The cells of this thread; threads without any return."""
        last = self.ndim - 1
        yield f"const int low = a.lo[{last}], high = a.hi[{last}];"
        yield "const int first = low & ~(W - 1);"
        yield f"const unsigned block = {self._block()};"
        if self.ndim == 1:
            yield "const int k = first + (int)(block * blockDim.x + threadIdx.x) * W;"
            yield "if (k >= high) return;"
        else:
            yield f"const unsigned tiles = (high - first + {LANES} * W - 1) / ({LANES} * W);"
            yield f"const int k = first + (int)(block % tiles * {LANES} + threadIdx.x % {LANES}) * W;"
            yield "unsigned line = block / tiles;"
            yield f"const int top = a.hi[{last - 1}];"
            if self.ndim == 3:
                yield f"const unsigned lines = (top - a.lo[1] + {LINES} * ROWS - 1) / ({LINES} * ROWS);"
                yield "const int i = a.lo[0] + (int)(line / lines);"
                yield "line %= lines;"
            yield f"const int j = a.lo[{last - 1}] + (int)(line * {LINES} + threadIdx.x / {LANES}) * ROWS;"
            yield "if (k >= high || j >= top) return;"
        if self.body.uses_signals:
            yield "const long long step = now(a);"

    def _loads(self) -> Iterator[str]:
        patches = self._patches(self.rows)
        yield from self._pointers()
        for patch in patches.values():
            yield f"R {self._array(patch)}[{patch.rows}][{patch.width}];"
            for row, columns in patch.columns.items():
                yield from self._row(patch, row, columns)

    def _row(self, patch: Patch, row: int, columns: frozenset[int]) -> Iterator[str]:
        """One row: whole aligned groups of W by one access, other values one by one."""
        array = f"{self._array(patch)}[{row - patch.first_row}]"
        place = self._start(patch, row)
        axes = self.arguments.problem.fields[patch.field].axes
        rest, width = set(columns), self.arguments.width
        if self.ndim - 1 in axes:
            for chunk in sorted({column // width * width for column in columns}):
                if set(range(chunk, chunk + width)) <= rest:
                    yield f"load({array} + {chunk - patch.first_column}, {plus(place, chunk)});"
                    rest -= set(range(chunk, chunk + width))
        for column in sorted(rest):
            yield f"{array}[{column - patch.first_column}] = __ldg({plus(place, column)});"

    def _index(self, patch: Patch, row: int) -> dict[int, str]:
        names = coordinates(self.ndim)
        index = dict(enumerate(names))
        if self.ndim == 3:
            index[0] = plus("i", patch.plane)
        if self.ndim > 1:
            reach = max(patch.columns) - (self.rows - 1)
            text = plus("j", row)
            index[self.ndim - 2] = f"min({text}, {plus('top', reach - 1)})" if row > reach else text
        return index

    def _stores(self) -> Iterator[str]:
        here = dict(enumerate(coordinates(self.ndim)))
        if self.ndim > 1:
            here[self.ndim - 2] = "j + r"
        yield "#pragma unroll"
        yield "for (int r = 0; r < ROWS; ++r) {"
        if self.ndim > 1:
            yield "  if (j + r >= top) break;"
        for name in self.variant.stored:
            version = self.group.after[name]
            to = f"{self.naming.block(name, version)} + {self.naming.at(name, here, version)}"
            yield f"  R* const to_{self.naming.field(name)} = {to};"
        yield "  if (k >= low && k + W <= high) {"
        for name in self.variant.stored:
            yield f"    store(to_{self.naming.field(name)}, {self._out(name)}[r]);"
        yield "  } else {"
        for name in self.variant.stored:
            yield f"    store(to_{self.naming.field(name)}, {self._out(name)}[r], k, low, high);"
        yield "  }"
        yield "}"


def _indent(lines: Iterable[str], spaces: int) -> str:
    return "\n".join(line if line.startswith("#") else " " * spaces + line for line in lines)
