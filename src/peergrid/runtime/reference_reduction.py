"""Reductions by plain NumPy, and the values for all reductions on virtual devices.

A reduction's expression is the one update of a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from peergrid.codegen.reductions import leaves
from peergrid.grid import Array, Box
from peergrid.runtime.kernel import Kernel, Pass
from peergrid.runtime.memory import Block, DeviceMemory
from peergrid.runtime.reductions import Arithmetic, Values
from peergrid.runtime.reference import ReferenceKernel
from peergrid.stencil import Assignment, Problem, Reduction, Update

VALUE = "value of the reduction"
MakeKernel = Callable[[Problem], Kernel]


def reference_reductions(problem: Problem) -> Arithmetic:
    """The arithmetic of a problem's reductions by plain NumPy, which defines correct results."""
    return values_by(ReferenceKernel, problem), leaves


def value_problem(problem: Problem, one: Reduction) -> Problem:
    """The problem whose step gives a new field the values of the reduction's expression; it reads all others."""
    fields = (problem.grid.field(VALUE), *(replace(given, earlier=None) for given in one.fields))
    return Problem.of(Update(one.name, one.box, (Assignment(VALUE, one.value),), fields, (), one.params, one.tables))


def values_by(make: MakeKernel, problem: Problem) -> Values:
    """The values of reductions, by kernels."""
    kernels: dict[str, Kernel] = {one.name: make(value_problem(problem, one)) for one in problem.reductions}
    kept: dict[tuple[str, int, Box, int], DeviceMemory] = {}
    traces = np.empty((0, 1), problem.grid.dtype)

    def values(one: Reduction, memory: DeviceMemory, box: Box, slot: int) -> Array:
        key = one.name, memory.device, box, slot
        if key not in kept:
            kept[key] = _memory(problem, one, memory, box, slot)
        kernels[one.name](kept[key], Pass(box, 0, 1, 0, 1, traces))
        return kept[key].block(VALUE, 1).array

    return values


def _memory(problem: Problem, one: Reduction, memory: DeviceMemory, box: Box, slot: int) -> DeviceMemory:
    """The memory of the kernel of a reduction: its fields in the slot, and room for the values of a box."""
    value = Block(problem.grid.field(VALUE), box, np.empty(box.shape, problem.grid.dtype))
    return DeviceMemory(
        memory.device, {VALUE: (value, value)}, {n: _block(memory, one, n, slot) for n in one.described}
    )


def _block(memory: DeviceMemory, one: Reduction, alias: str, slot: int) -> Block:
    name, previous = one.source(alias)
    return replace(memory.block(name, 1 - slot if previous else slot), field=one.described[alias])
