"""Which shape a pass over a 3D grid takes: by a forecast from the problem alone, without a compiler or a device.

A lane keeps `BASE` registers, two for each field that it loads or stores, and one (two in double precision) for each
of its cells in every plane that is kept. A pass takes as long as the slower of memory, which every field crosses once
whatever the steps, and arithmetic, of which a share is redundant; a step by itself takes as long as its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from peergrid.codegen.cuda.edge3d import EdgeShape3D
from peergrid.codegen.cuda.groups import groups
from peergrid.codegen.cuda.pass3d import PassKernel3D
from peergrid.codegen.cuda.shape3d import Shape3D, reach
from peergrid.codegen.cuda.walls import core, supported
from peergrid.stencil import Problem
from peergrid.stencil.expr import Binary, Expr, Unary, Where, walk

BASE = 24
REGISTERS = 65536  # of a multiprocessor
MOST_REGISTERS = 240  # of a thread
MOST_BYTES = 227 << 10  # of shared memory for a thread block
EDGE_BYTES = 200 << 10
EDGE_ROWS = (16, 24, 12)
MOST_STEPS = 6
BYTES_PER_CLOCK = 18.0  # of device memory, for each multiprocessor
OPERATIONS_PER_CLOCK = 50.0  # in single precision, with all that comes along; half of it in double precision


@lru_cache(maxsize=64)
def pass3d(problem: Problem, steps: int) -> PassKernel3D | None:
    """The kernel that makes `steps` steps of a 3D problem in one pass; None where there is none."""
    if not 1 <= steps <= MOST_STEPS or not supported(problem):
        return None
    edge = _edge(problem, steps)
    if edge is None:
        return None
    found = [PassKernel3D(problem, shape, edge) for shape in _shapes(problem, steps)]
    return max((kernel for kernel in found if _fits(kernel)), key=worth, default=None)


def worth(kernel: PassKernel3D) -> float:
    """How many times faster than one step after another."""
    return _one_step(kernel.problem) / max(_memory(kernel), _arithmetic(kernel)) * kernel.steps


def _shapes(problem: Problem, steps: int) -> Iterator[Shape3D]:
    columns = (4, 2) if problem.itemsize == 4 else (2,)
    growth = reach(problem, steps)
    for width, rows, warps, held, ahead in product(columns, (2, 4, 1), (16, 12, 8, 24), (True, False), (2, 1)):
        shape = Shape3D(steps, width, rows, warps, ahead, held=held)
        beside = max(growth.below[1] + growth.above[1] + rows, growth.below[2] + growth.above[2] + 16)
        if min(shape.height, shape.width) > beside:
            yield shape


def _fits(kernel: PassKernel3D) -> bool:
    room = min(MOST_REGISTERS, REGISTERS // kernel.shape.threads)
    return _registers(kernel) <= room and kernel.plain.shared_bytes <= MOST_BYTES


def _registers(kernel: PassKernel3D) -> int:
    stream, shape = kernel.stream, kernel.shape
    versions = (*stream.levels.inputs, *stream.levels.versions)
    planes = sum(version.depth for version in versions if stream.held(version))
    values = shape.columns * shape.rows * planes * (kernel.problem.itemsize // 4)
    return BASE + 2 * (len(stream.levels.inputs) + len(stream.levels.finals)) + values


def _edge(problem: Problem, steps: int) -> EdgeShape3D | None:
    """The shape of edge tiles; the smallest where a whole grid has none."""
    growth = reach(problem, steps)
    beside = growth.below[1] + growth.above[1]
    for height in EDGE_ROWS:
        kernel = PassKernel3D(problem, Shape3D(steps), EdgeShape3D(steps, height)).edges
        if kernel.shared_bytes <= EDGE_BYTES and height > beside and min(kernel.useful) > 0:
            return kernel.shape
    return None


def _memory(kernel: PassKernel3D) -> float:
    """Clocks of a multiprocessor for each cell of a pass."""
    levels = kernel.stream.levels
    return (len(levels.inputs) + len(levels.finals)) * kernel.problem.itemsize / BYTES_PER_CLOCK


def _arithmetic(kernel: PassKernel3D) -> float:
    """Clocks of a multiprocessor for each cell of a pass, redundant ones included."""
    operations = sum(_operations(w.assignment.value) for node in kernel.stream.levels.nodes for w in node.writes)
    inside, _ = core(kernel.problem, kernel.steps)
    share = kernel.useful(inside & kernel.problem.grid.box)
    return operations * kernel.problem.itemsize / 4 / OPERATIONS_PER_CLOCK / share


def _one_step(problem: Problem) -> float:
    """Clocks of a multiprocessor for each cell of a step, by kernels that make one."""
    moved = 0
    for group in groups(problem):
        read = {r.field for member in group.members(problem) for r in member.of(problem).reads}
        moved += len(read | set(group.targets(problem))) + len(group.targets(problem))
    return moved * problem.itemsize / BYTES_PER_CLOCK


def _operations(expression: Expr) -> int:
    return sum(isinstance(node, Unary | Binary | Where) for node in walk(expression))
