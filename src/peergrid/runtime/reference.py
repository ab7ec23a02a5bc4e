"""The kernel that defines correct results: plain NumPy, one stage at a time over whole boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peergrid.grid import Array, Box, Signal
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory
from peergrid.stencil import Problem, Stage, Update, footprint, read_box, write_box
from peergrid.stencil.expr import Binary, Const, Entry, Expr, Now, Param, Read, Unary, Where
from peergrid.stencil.problem import Assignment
from peergrid.stencil.program import CellProgram, counts


def power_of_two(value: Any) -> Any:
    """2 to the nearest whole number: the sum has it in its last digits, and these become the exponent."""
    kind = np.finfo(value.dtype)
    raised = np.asarray(value + value.dtype.type(1.5 * 2.0**kind.nmant + kind.maxexp - 1))
    return (raised.view(f"i{raised.itemsize}") << kind.nmant).view(value.dtype)[()]


def exponent(value: Any) -> Any:
    """The exponent of a normal number, from its bits."""
    kind = np.finfo(value.dtype)
    bits = np.abs(np.asarray(value)).view(f"i{value.itemsize}")
    return ((bits >> kind.nmant) - (kind.maxexp - 1)).astype(value.dtype)[()]


UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "not": np.logical_not,
    "power_of_two": power_of_two,
    "exponent": exponent,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


@dataclass(frozen=True)
class Patch:
    """The values of a field on some cells, in an array of its own."""

    box: Box
    array: Array


@dataclass(frozen=True)
class ReferenceKernel:
    """A `Kernel` for any problem."""

    problem: Problem

    def __call__(self, memory: DeviceMemory, part: Pass) -> None:
        box, source, target, step, steps, traces, recorded = part
        patches = {name: self._load(memory, name, box, source, steps) for name in self.problem.fields}
        needs = footprint(self.problem, steps).targets
        for t in range(steps):
            for stage, need in zip(self.problem.stages, needs[t], strict=True):
                boxes = {name: self.problem.grid.clip(growth.apply(box)) for name, growth in need.items()}
                self._apply(stage, boxes, patches, step + t)
            for number in recorded:
                receiver = self.problem.receivers[number]
                if receiver.cell in box:
                    cell, patch = Box.cell(receiver.cell), patches[receiver.field]
                    if receiver.field not in self.problem.state:  # there beyond what updates read, too
                        patch = Patch(cell, memory.block(receiver.field, source).view(cell))
                    traces[number, step + t] = patch.array[cell.slices(patch.box.lo)].item()
        for name in self.problem.state:
            written = write_box(self.problem, name, box)
            if not written.empty:
                memory.block(name, target).view(written)[...] = patches[name].array[
                    written.slices(patches[name].box.lo)
                ]

    def _load(self, memory: DeviceMemory, name: str, box: Box, source: int, steps: int) -> Patch:
        block = memory.block(name, source)
        known = read_box(self.problem, name, box, steps) & block.box  # beyond a mirror more are named than read
        if known.empty:
            return Patch(Box(box.lo, box.lo), np.empty((0,) * box.ndim, dtype=self.problem.grid.dtype))
        return Patch(known, np.array(np.broadcast_to(block.view(known), known.shape)))

    def _apply(self, stage: Stage, boxes: dict[str, Box], patches: dict[str, Patch], step: int) -> None:
        fresh: list[tuple[Patch, Box, Array]] = []
        with np.errstate(all="ignore"):
            for update in stage.updates:
                for cells, assignments in self._together(update, boxes).items():
                    values = self._evaluate(CellProgram(tuple(a.value for a in assignments)), cells, patches, step)
                    for assignment, value in zip(assignments, values, strict=True):
                        fresh.append((patches[assignment.target], cells, np.broadcast_to(value, cells.shape)))
        for patch, cells, value in fresh:
            patch.array[cells.slices(patch.box.lo)] = value

    def _together(self, update: Update, boxes: dict[str, Box]) -> dict[Box, list[Assignment]]:
        """The assignments of an update by the cells on which they are wanted."""
        found: dict[Box, list[Assignment]] = {}
        for assignment in update.assignments:
            for cells in self.problem.grid.images(update.box, boxes[assignment.target]):
                found.setdefault(cells, []).append(assignment)
        return found

    def _evaluate(self, program: CellProgram, cells: Box, patches: dict[str, Patch], step: int) -> list[Any]:
        """The results of a program; each value is kept until its last use."""
        known: dict[Expr, Any] = {}
        left = dict(program.uses)
        for value in program.values:
            operands = [self._counted(known[o]) if counts(value, n) else known[o] for n, o in enumerate(value.operands)]
            known[value] = self._value(value, operands, cells, patches, step)
            for operand in value.operands:
                left[operand] -= 1
                if not left[operand]:
                    del known[operand]
        return [known[result] for result in program.results]

    def _value(self, value: Expr, operands: list[Any], cells: Box, patches: dict[str, Patch], step: int) -> Any:
        """One value from its operands."""
        match value:
            case Const(number):
                return self._kind(number)
            case Param(key):
                return self._kind(self.problem.params[key])
            case Now(name):
                return self._sample(self.problem.signals[name], cells, step)
            case Read():
                return self._read(value, cells, patches[value.field])
            case Unary(op):
                return UNARY[op](*operands)
            case Binary(op):
                return BINARY[op](*operands)
            case Where():
                return np.where(*operands)
            case Entry(name):
                return self._entry(self.problem.tables[name].values, *operands)
        raise TypeError(f"Unknown expression {value!r}.")

    def _sample(self, signal: Signal, cells: Box, step: int) -> Any:
        """A signal's sample: a number or, where it has slopes, one for each of the cells."""
        if step >= len(signal.samples):
            return self._kind(0)
        if not signal.slopes:
            return signal.samples[step]
        lines = (s * np.arange(lo, hi) for s, lo, hi in zip(signal.slopes, cells.lo, cells.hi, strict=True))
        return signal.samples[step][signal.first + sum(np.ix_(*lines))]

    def _entry(self, values: Array, index: Any) -> Any:
        """The entries of a table at some indices: see `grid.Table`."""
        near = np.where(index > 0, index, self._kind(0))
        return values[np.where(near < self._kind(len(values) - 1), near, len(values) - 1).astype(np.int64)]

    def _kind(self, value: float) -> Any:
        """A number rounded to the grid's dtype."""
        return np.dtype(self.problem.grid.dtype).type(value)

    def _counted(self, condition: Any) -> Any:
        """1 in cells where a condition holds, 0 elsewhere."""
        return np.asarray(condition).astype(self.problem.grid.dtype)[()]

    def _read(self, read: Read, cells: Box, patch: Patch) -> Array:
        """The values at an offset from the cells; beyond a reflecting edge, the mirrored ones.

        An offset along an axis on which the field does not vary has no effect, and may lead out of the patch.
        """
        values = patch.array
        for axis, (lo, hi, start) in enumerate(zip(cells.lo, cells.hi, patch.box.lo, strict=True)):
            offset = read.offset[axis] if axis in self.problem.fields[read.field].axes else 0
            extent = self.problem.grid.shape[axis]
            first, last = lo + offset, hi + offset
            if self.problem.grid.boundary[axis] == "reflecting" and (first < 0 or last > extent):
                line = np.arange(first, last)
                line = np.where(line < 0, -1 - line, line)
                line = np.where(line >= extent, 2 * extent - 1 - line, line)
                values = values.take(line - start, axis)
            else:
                values = values[(slice(None),) * axis + (slice(first - start, last - start),)]
        return values.copy()  # a stage writes its results when all are known
