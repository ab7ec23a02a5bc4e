"""The text of one stage in an edge tile of a 3D pass, for all steps: each advances its own plane in shared memory.

A cell takes the updates whose boxes hold it one after another, from its value before the stage. What is final after the
stage goes to the receivers and, after the last step, to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.reach import known
from peergrid.codegen.cuda.blocked.step_plan import Rows, StagePlan
from peergrid.codegen.cuda.blocked3d.edge.rings import WIDTH, EdgeRings3D
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.cells import assigned
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update

AXES = "zyx"


def place_of(number: int, z: str, y: str, x: str) -> str:
    """The text of a cell's place in the memory of a full field, from that of cell 0."""
    return f"({z} * a.fields[{number}].pitch[0] + {y} * a.fields[{number}].pitch[1] + {x})"


@dataclass(frozen=True)
class EdgeStage3D:
    """The text of one stage of all steps."""

    rings: EdgeRings3D
    number: int

    @property
    def plan(self) -> StagePlan:
        return self.rings.plan.stages[self.number]

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def problem(self) -> Problem:
        return self.rings.problem

    def lines(self) -> Iterator[str]:
        yield "#pragma unroll"
        yield f"    for (int t = 0; t < {self.rings.shape.steps}; ++t) {{  // stage {self.plan.number}"
        yield f"      const int z = r - t * {self.rings.plan.lag} - {self.plan.lag};"
        yield "      if (z < first || z >= last) continue;"
        yield "      const long long step = step0 + t;"
        yield from self._planes()
        yield f"      for (int y = top + warp; y < bottom; y += {self.rings.shape.warps}) {{"
        yield "        if (x >= right) break;"
        yield f"        const int c = (y - top) * {WIDTH} + lane;"
        for axis in (1, 2):
            if self.problem.grid.periodic[axis]:
                yield f"        const int {AXES[axis]}w = pg_wrap({AXES[axis]}, {self.problem.grid.shape[axis]});"
        for k, target in enumerate(self.plan.targets):
            yield f"        R n{k} = {self._read(Read(target, (0, 0, 0)))};"
        for k, update in enumerate(self.plan.stage.updates):
            yield from self._update(k, update)
        for k, rows in enumerate(self.plan.targets.values()):
            yield f"        {self._name(rows.field, 'w')}[c] = n{k};"
        yield from self._finished()
        yield "      }"
        yield "    }"
        yield "    __syncthreads();"

    def _planes(self) -> Iterator[str]:
        """Pointers to the planes that the stage reads and writes, and which of its updates concern its plane."""
        offsets = {(r.field, r.offset[0]) for u in self.plan.stage.updates for r in u.reads}
        offsets |= {(target, 0) for target in self.plan.targets}
        for name, offset in sorted(offsets):
            if name in self.plan.before:
                plane = self._mirrored(f"z + {offset}", 0) if offset else "z"
                yield self._pointer(self.plan.before[name], self._tag(offset), plane, "const R*")
        for rows in self.plan.targets.values():
            yield self._pointer(rows, "w", "z", "R*")
        if self.problem.grid.periodic[0]:
            yield f"      const int zw = pg_wrap(z, {self.problem.grid.shape[0]});"
        for k, update in enumerate(self.plan.stage.updates):
            tests = [*self._inside(update, 0), *self._near(update)]
            yield f"      const bool in{k} = {' && '.join(tests) or 'true'};"

    def _pointer(self, rows: Rows, tag: str, plane: str, kind: str) -> str:
        base, place = self.rings.ring(rows)
        where = f"{base} + {place.format(row=plane)} * {self.rings.plane}"
        return f"      {kind} const {self._name(rows.field, tag)} = s + {where};"

    def _near(self, update: Update) -> Iterator[str]:
        """Whether the tile reaches the update's box along the other axes, to be told once for a whole plane."""
        for axis, (first, last) in ((1, ("top", "bottom")), (2, ("x0", "right"))):
            if not self.problem.grid.periodic[axis]:
                lo, hi = self._ends(update, axis)
                if hi:
                    yield f"{first} < {hi}"
                if lo:
                    yield f"{last} > {lo}"

    def _name(self, field: str, tag: str) -> str:
        return f"p{self.arguments.fields.index(field)}{tag}"

    def _tag(self, offset: int) -> str:
        return f"m{-offset}" if offset < 0 else f"p{offset}"

    def _mirrored(self, text: str, axis: int) -> str:
        if self.problem.grid.boundary[axis] != "reflecting":
            return text
        return f"pg_mirror({text}, {self.problem.grid.shape[axis]})"

    def _inside(self, update: Update, axis: int) -> Iterator[str]:
        """Whether a cell of the tile lies in the update's box along an axis."""
        at, (lo, hi) = AXES[axis] + "w" * self.problem.grid.periodic[axis], self._ends(update, axis)
        if lo:
            yield f"{at} >= {lo}"
        if hi:
            yield f"{at} < {hi}"

    def _ends(self, update: Update, axis: int) -> tuple[str, str]:
        """Where an update's box begins and ends along an axis; empty at the grid's edges, where no cell is beyond."""
        lo, hi = self.arguments.bounds(update, axis)
        return lo if lo != "0" else "", hi if hi != str(self.problem.grid.shape[axis]) else ""

    def _update(self, k: int, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        tests = [f"in{k}", *self._inside(update, 1), *self._inside(update, 2)]
        yield f"        if ({' && '.join(tests)}) {{"
        targets = list(self.plan.targets)
        names = [f"n{targets.index(target)}" for target in update.targets]
        for line in assigned(self.arguments, update.assignments, names, self._read):
            yield f"          {line}"
        yield "        }"

    def _read(self, read: Read) -> str:
        if read.field not in self.plan.before:
            return self._coefficient(read)
        pointer = self._name(read.field, self._tag(read.offset[0]))
        if all(self.problem.grid.boundary[axis] != "reflecting" or not read.offset[axis] for axis in (1, 2)):
            return f"{pointer}[c + {read.offset[1] * WIDTH + read.offset[2]}]"
        row, column = self._mirrored(f"y + {read.offset[1]}", 1), self._mirrored(f"x + {read.offset[2]}", 2)
        return f"{pointer}[({row} - top) * {WIDTH} + {column} - x0]"

    def _coefficient(self, read: Read) -> str:
        """A value straight from memory; where the device has none, its nearest (such cells are never used)."""
        described = self.problem.fields[read.field]
        number = self.arguments.fields.index(read.field)
        index = []
        for axis in described.axes:
            here = self._mirrored(f"{AXES[axis]} + {read.offset[axis]}", axis)
            lo, hi = known(self.problem, self.rings.shape.steps, self.problem.fields[read.field], axis)
            index.append(f"pg_clamp({here}, {lo}, {hi})")
        place = index[0] if len(index) == 1 else place_of(number, *index)
        return f"a.fields[{number}].slot[0][{place}]"

    def _finished(self) -> Iterator[str]:
        """What is final after this stage goes to the receivers, and after the last step to memory."""
        recorded = {receiver.field for receiver in self.problem.receivers}
        for k, name in enumerate(self.plan.targets):
            if self.rings.plan.last_stage(name) != self.number:
                continue
            number = self.arguments.fields.index(name)
            inside = " && ".join(self._stored(name, axis) for axis in range(3))
            yield f"        if (t == {self.rings.shape.steps - 1} && {inside})"
            yield f"          a.fields[{number}].slot[target][{place_of(number, 'z', 'y', 'x')}] = n{k};"
            if name in recorded:
                yield "        for (int q = tile.first; q < tile.first + tile.variant; ++q) {"
                yield "          const Receiver& receiver = a.receivers[q];"
                yield "          const int* const cell = receiver.cell;"
                yield f"          if (receiver.field == {number} && cell[0] == z && cell[1] == y && cell[2] == x)"
                yield f"            a.traces[receiver.number * a.total_steps + step] = n{k};"
                yield "        }"

    def _stored(self, name: str, axis: int) -> str:
        lo, hi = (("z0", "z1"), ("y0", "y1"), ("c0", "c1"))[axis]
        box, here = self.problem.fields[name].box, AXES[axis]
        if not self.problem.grid.periodic[axis]:
            lo, hi = f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"
        return f"{here} >= {lo} && {here} < {hi}"
