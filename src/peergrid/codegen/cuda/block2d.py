"""Several time steps of a small 2D tile by one thread block that holds all of it in shared memory.

Where a grid is so small that a pass waits for its slowest tile, what counts is how soon a tile is done, not how much
is computed twice. All threads make a step together and a barrier ends each stage: a pass takes as many barriers as it
has stages, not one for each row. Each step computes fewer of the cells around the tile than the one before.

A tile may lie anywhere: edges, confined updates, sources and receivers are known here, as in `edge2d`. What is final
goes to memory at once, and to the neighbours' ghost cells where they need it (see `links`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.confined import Confined
from peergrid.codegen.cuda.expressions import emit
from peergrid.codegen.cuda.places import inside, mirrored, wrapped, written
from peergrid.codegen.cuda.stream_parts import known
from peergrid.grid import Box
from peergrid.stencil import Growth, Problem, Stage, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update


@dataclass(frozen=True)
class BlockShape:
    """Steps of a pass; columns of a tile and those around it (a multiple of 32); most rows of a tile; warps."""

    steps: int
    width: int = 64
    rows: int = 16
    warps: int = 16


@dataclass(frozen=True)
class Block2D:
    """The text of the tiles for one problem and shape."""

    problem: Problem
    shape: BlockShape

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @cached_property
    def confined(self) -> Confined:
        return Confined(self.problem)

    @cached_property
    def reach(self) -> Growth:
        """What one step reads around the cells that it makes, of any field."""
        return reduce(Growth.__or__, footprint(self.problem, 1).inputs.values())

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.shape.width - self.shape.steps * (self.reach.below[1] + self.reach.above[1])

    @property
    def values(self) -> int:
        """Values of one array in shared memory."""
        high = self.shape.rows + self.shape.steps * (self.reach.below[0] + self.reach.above[0])
        return high * self.shape.width

    @cached_property
    def double(self) -> tuple[str, ...]:
        """The fields that a stage both writes and reads at other cells: it reads one array and writes another."""
        return tuple(name for name in self.problem.state if any(_mixed(stage, name) for stage in self.problem.stages))

    @cached_property
    def starts(self) -> dict[str, int]:
        """Where the (first) array of each field begins in shared memory, in values."""
        found, at = dict[str, int](), 0
        for name in self.arguments.fields:
            if name in self.problem.state or self.problem.fields[name].full:
                found[name] = at
                at += self.values * (2 if name in self.double else 1)
        return found

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.values * (len(self.starts) + len(self.double)) * self.problem.itemsize

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block; it ends with a barrier."""
        steps, (up, left) = self.shape.steps, self.reach.below
        swapped = (
            f"  int {self._array(name)} = {self.starts[name]}, {self._other(name)} = {self.starts[name] + self.values};"
            for name in self.double
        )
        lines = [
            "__device__ __forceinline__ void block2d_tile(const Arguments& a, const Links& links, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
            "  R* const s = reinterpret_cast<R*>(shared);",
            "  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            "  const int y0 = tile.lo[0], y1 = tile.hi[0], c0 = tile.lo[1], c1 = tile.hi[1];",
            f"  const int yb = y0 - {steps * up}, xb = c0 - {steps * left};",
            *self._constant_receivers(),
            f"  {self._bounds(str(steps), Growth.none(2))}",
            *self._here(),
            *self._cells(self._load()),
            "  pg_fetched();",
            "  pg_await<0>();",
            "  __syncthreads();",
            *swapped,
            "#pragma unroll 1",
            f"  for (int t = 0; t < {steps}; ++t) {{",
            "    const long long step = step0 + t;",
            f"    const int left = {steps - 1} - t;",
            *(line for number in range(len(self.problem.stages)) for line in self._stage(number)),
            "  }",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _bounds(self, left: str, growth: Growth) -> str:
        """The cells to compute when so many steps are left, none beyond an edge that is not periodic."""
        texts = []
        for axis, (lo, hi) in enumerate((("y0", "y1"), ("c0", "c1"))):
            first = f"{lo} - {left} * {self.reach.below[axis]} - {growth.below[axis]}"
            last = f"{hi} + {left} * {self.reach.above[axis]} + {growth.above[axis]}"
            if not self.problem.grid.periodic[axis]:
                first, last = f"max({first}, 0)", f"min({last}, {self.problem.grid.shape[axis]})"
            name = "yx"[axis]
            texts.append(f"const int {name}a = {first}, {name}e = {last};")
        return " ".join(texts)

    def _cells(self, body: Iterable[str]) -> Iterator[str]:
        """A loop over the cells within the bounds, 32 of a row by each warp."""
        parts = self.shape.width // 32
        yield f"  for (int j = warp; j < (ye - ya) * {parts}; j += {self.shape.warps}) {{"
        yield f"    const int y = ya + j / {parts}, x = xa + j % {parts} * 32 + lane;"
        yield "    if (x < xe) {"
        yield f"      const int at = (y - yb) * {self.shape.width} + (x - xb);"
        yield from body
        yield "    }"
        yield "  }"

    def _here(self) -> Iterator[str]:
        """Which confined fields the tile touches."""
        if self.confined.names:
            yield "  unsigned here = 0;"
        for name in self.confined.names:
            yield f"  if ({_near(self.problem.fields[name].box)}) here |= {self.confined.bit(name)};"

    def _load(self) -> Iterator[str]:
        for name, start in self.starts.items():
            number, slot = self.arguments.fields.index(name), "source" if name in self.problem.state else "0"
            (ylo, yhi), (xlo, xhi) = (
                known(self.problem, self.shape.steps, self.problem.fields[name], axis) for axis in (0, 1)
            )
            yield f"      {self.confined.test(name)}{{"
            yield f"        if (y >= {ylo} && y < {yhi} && x >= {xlo} && x < {xhi})"
            yield (
                f"          pg_fetch<sizeof(R)>(s + {start} + at, a.fields[{number}].slot[{slot}] + "
                f"(y * a.fields[{number}].pitch[0] + x));"
            )
            yield f"        else s[{start} + at] = R(0);"
            yield "      }"

    def _constant_receivers(self) -> Iterator[str]:
        """Receivers of coefficients, which no step changes."""
        for name in sorted({r.field for r in self.problem.receivers} - set(self.problem.state)):
            number, axes = self.arguments.fields.index(name), self.problem.fields[name].axes
            place = [f"q.cell[{axis}]" for axis in axes]
            index = place[0] if len(place) == 1 else f"{place[0]} * a.fields[{number}].pitch[0] + {place[1]}"
            yield f"  if (threadIdx.x < {self.shape.steps})"
            yield "    for (int k = tile.first; k < tile.first + tile.variant; ++k) {"
            yield "      const Receiver q = a.receivers[k];"
            yield f"      if (q.field == {number})"
            yield "        a.traces[q.number * a.total_steps + step0 + static_cast<int>(threadIdx.x)] ="
            yield f"            a.fields[{number}].slot[0][{index}];"
            yield "    }"

    def _stage(self, number: int) -> Iterator[str]:
        stage = self.problem.stages[number]
        growth = reduce(Growth.__or__, footprint(self.problem, 1).targets[0][number].values())
        mixed = [name for name in self.double if _mixed(stage, name)]
        yield f"    {{  // stage {number}"
        yield f"      {self._bounds('left', growth)}"
        for k, update in enumerate(stage.updates):
            near = "true" if any(self.problem.grid.periodic) else _near(update.box)
            yield f"      const bool near{k} = {near};"
        yield from self._cells(self._advance(number, stage, mixed))
        yield "      __syncthreads();"
        for name in mixed:
            yield f"      {{ const int q = {self._array(name)}; {self._array(name)} = {self._other(name)};"
            yield f"        {self._other(name)} = q; }}"
        yield from self._record(number, stage)
        yield "    }"

    def _advance(self, number: int, stage: Stage, mixed: list[str]) -> Iterator[str]:
        """One cell in one stage."""
        for axis in (0, 1):
            if declared := wrapped(self.problem, axis):
                yield f"      {declared}"
        for k, name in enumerate(stage.targets):
            test = self.confined.test(name)
            yield f"      R n{k} = R(0);" if test else f"      R n{k} = s[{self._array(name)} + at];"
            if test:
                yield f"      {test}n{k} = s[{self._array(name)} + at];"
        for k, update in enumerate(stage.updates):
            yield from self._update(k, stage, update)
        for k, name in enumerate(stage.targets):
            array = self._other(name) if name in mixed else self._array(name)
            yield f"      {self.confined.test(name)}s[{array} + at] = n{k};"
        for k, name in enumerate(stage.targets):
            if self._last_stage(name) == number:
                yield from self._final(name, f"n{k}")

    def _update(self, k: int, stage: Stage, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        tests = " && ".join(inside(self.problem, update.box, axis) for axis in (0, 1))
        yield f"      if (near{k} && {tests}) {{"
        targets = list(stage.targets)
        for assignment in update.assignments:
            arguments = self.arguments
            text = emit(assignment.value, self._read, arguments.param, arguments.now, self.problem.grid.dtype)
            yield f"        n{targets.index(assignment.target)} = {text};"
        yield "      }"

    def _read(self, read: Read) -> str:
        if read.field not in self.starts:
            return self._profile(read)
        if "reflecting" in self.problem.grid.boundary and any(read.offset):
            y, x = (self._mirrored(read, axis) for axis in (0, 1))
            return f"s[{self._array(read.field)} + ({y} - yb) * {self.shape.width} + ({x} - xb)]"
        return f"s[{self._array(read.field)} + at + {read.offset[0] * self.shape.width + read.offset[1]}]"

    def _mirrored(self, read: Read, axis: int) -> str:
        text = f"{'yx'[axis]} + {read.offset[axis]}"
        found = mirrored(self.problem, text, axis)
        return found if found != text else f"({text})"

    def _profile(self, read: Read) -> str:
        """A value straight from memory; where the device has none, its nearest (such cells are never used)."""
        described, number = self.problem.fields[read.field], self.arguments.fields.index(read.field)
        (axis,) = described.axes
        lo, hi = known(self.problem, self.shape.steps, described, axis)
        return f"a.fields[{number}].slot[0][pg_clamp({self._mirrored(read, axis)}, {lo}, {hi})]"

    def _final(self, name: str, value: str) -> Iterator[str]:
        """What the last step leaves goes to memory, and to the neighbours that need it."""
        number, growth = self.arguments.fields.index(name), footprint(self.problem, self.shape.steps).inputs[name]
        (ylo, yhi), (xlo, xhi) = (written(self.problem, name, axis) for axis in (0, 1))
        place = f".fields[{number}].slot[target][y * {{of}}.fields[{number}].pitch[0] + x] = {value};"
        yield f"      if (!left && y >= {ylo} && y < {yhi} && x >= {xlo} && x < {xhi}) {{"
        yield f"        a{place.format(of='a')}"
        for side, test in ((0, f"y < a.lo[0] + {growth.above[0]}"), (1, f"y >= a.hi[0] - {growth.below[0]}")):
            yield f"        if (links.side[{side}].mine && {test})"
            yield f"          links.side[{side}]{place.format(of=f'links.side[{side}]')}"
        yield "      }"

    def _last_stage(self, name: str) -> int:
        return max(k for k, stage in enumerate(self.problem.stages) if name in stage.targets)

    def _record(self, number: int, stage: Stage) -> Iterator[str]:
        """What is final after a stage goes to the receivers."""
        recorded = {receiver.field for receiver in self.problem.receivers}
        done = [name for name in stage.targets if name in recorded and self._last_stage(name) == number]
        if not done:
            return
        yield "      if (tile.variant) {"
        yield "        for (int k = threadIdx.x; k < tile.variant; k += static_cast<int>(blockDim.x)) {"
        yield "          const Receiver q = a.receivers[tile.first + k];"
        yield f"          const int at = (q.cell[0] - yb) * {self.shape.width} + (q.cell[1] - xb);"
        for name in done:
            yield f"          if (q.field == {self.arguments.fields.index(name)})"
            yield f"            a.traces[q.number * a.total_steps + step] = s[{self._array(name)} + at];"
        yield "        }"
        yield "        __syncthreads();"
        yield "      }"

    def _array(self, name: str) -> str:
        """The text of where a field's current values begin."""
        return f"p{self.arguments.fields.index(name)}" if name in self.double else str(self.starts[name])

    def _other(self, name: str) -> str:
        return f"o{self.arguments.fields.index(name)}"


def _mixed(stage: Stage, name: str) -> bool:
    """Whether a stage writes a field and reads it at other cells."""
    return name in stage.targets and any(r.field == name and any(r.offset) for u in stage.updates for r in u.reads)


def _near(box: Box) -> str:
    """Whether the cells within the bounds reach a box."""
    return f"ya < {box.hi[0]} && ye > {box.lo[0]} && xa < {box.hi[1]} && xe > {box.lo[1]}"
