"""The shape of a pass over a 3D grid: by a forecast from the problem alone, without a compiler or a device.

A lane keeps `BASE` registers, two for each field that it loads or stores, and one (two in double precision) for each
of its cells in every plane that is kept; with fewer, down to a share of them, the compiler finds a way, which costs.
A pass takes as long as the slower of memory, which every field crosses once whatever the steps, and instructions, of
which a share is redundant; a step by itself takes as long as its memory. The constants follow eighty shapes that were
measured on an H200; they order the shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import sqrt

from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.codegen.cuda.blocked3d.edge.rings import EdgeShape3D
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.walls import core, supported
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.stencil import Problem
from peergrid.stencil.program import CellProgram
from peergrid.stencil.remember import remembered

BASE = 24
MOST_REGISTERS = 240  # of a thread
EDGE_ROWS = ((32, 2), (16, 1), (24, 1), (12, 1))  # of which so many shall fit
MOST_STEPS = 4
BYTES_AHEAD = 48 << 10  # in flight, from which on memory is as fast as it gets
CACHE = 0.2  # slower, were all of an H200's first-level cache, through which planes come, shared memory
PER_PLANE = 32  # instructions of a lane beside arithmetic, and for each field that it loads or stores
PER_FIELD = 14
ISSUED, PER_WARP, MOST_ISSUED = 0.16, 0.0225, 0.73  # share of the clocks in which instructions are issued
LEAST_REGISTERS = {4: 0.8, 8: 0.9}  # share of those wanted with which the compiler finds a way, by bytes of a value
SQUEEZED = 1.16  # what that adds to the instructions, and planes that are read from shared memory again and again
UNHELD = 1.2
JOINED = 0.93  # where all nodes between two barriers are one text
TWICE = 26  # fields that cross memory, from which on all that tiles load twice comes from memory twice
CUTS = (((1, 32), (2, 16)), ((1, 24),), ((1, 16), (2, 8)), ((1, 12), (1, 8)))  # rows of a lane, warps: tall tiles first
EDGE_COST = 9.0  # of a cell of an edge tile, by that of a plain one
SHELL_COST = 4.5  # of a cell of a shell, by what one step moves
ASIDE_COST = 4.0  # of a cell with other updates than the usual ones, where a step is by itself


@remembered()
def pass3d(problem: Problem, steps: int, gpu: GpuModel = H200) -> PassKernel3D | None:
    """The kernel that makes `steps` steps of a 3D problem in one pass; None where there is none.

    gpu: what it is fitted to.
    """
    if not 1 <= steps <= MOST_STEPS or not supported(problem):
        return None
    edge = _edge(problem, steps, gpu)
    for cuts in CUTS:
        shapes = list(_shapes(problem, steps, cuts))
        found = [PassKernel3D(problem, shape, shelled=True, gpu=gpu) for shape in shapes]
        if found and edge is not None:
            found = [PassKernel3D(problem, shape, edge, gpu=gpu) for shape in shapes] + found * found[0].parted
        best = max((kernel for kernel in found if _fits(kernel)), key=worth, default=None)
        if best is not None:
            return best
    return None


def worth(kernel: PassKernel3D) -> float:
    """The rate over that of one step after another."""
    grid = kernel.problem.grid.box
    plain = (core(kernel.problem, kernel.steps)[0] & grid).size / grid.size
    instructions = _instructions(kernel)
    both: float = (_memory(kernel) ** 16 + instructions**16) ** (1 / 16)  # alike, they get in each other's way
    if not kernel.edged:
        both *= 1 + CACHE * kernel.stream.shared_bytes / H200.shared
    rest = (
        SHELL_COST * kernel.steps * _swept(kernel.problem, kernel.gpu) if kernel.shelled else EDGE_COST * instructions
    )
    return _one_step(kernel.problem, kernel.gpu) * kernel.steps / (plain * both + (1 - plain) * rest)


def _shapes(problem: Problem, steps: int, cuts: Iterable[tuple[int, int]]) -> Iterator[Shape3D]:
    full, growth = 16 // problem.itemsize, reach(problem, steps)
    widths = (full,) if full == 2 or len(problem.state) <= 2 else (full, full // 2)  # many fields leave few registers
    shapes = product(widths, cuts, (4, 3, 2, 1), (True, False), (True, False))
    for columns, (rows, warps), ahead, held, turning in shapes:
        shape = Shape3D(steps, columns, rows, warps, ahead, held=held, turning=turning, joined=steps > 2)
        beside = growth.below[1] + growth.above[1], growth.below[2] + growth.above[2]
        if shape.height > beside[0] and shape.width > beside[1] + 16:
            yield shape


def _fits(kernel: PassKernel3D) -> bool:
    least = LEAST_REGISTERS[kernel.problem.itemsize] * _registers(kernel)
    return least <= _room(kernel) and kernel.stream.shared_bytes <= kernel.gpu.block_shared


def _room(kernel: PassKernel3D) -> int:
    """The registers that a lane can have."""
    return min(MOST_REGISTERS, kernel.gpu.registers // kernel.shape.threads // 8 * 8)


def _registers(kernel: PassKernel3D) -> int:
    planes, shape = kernel.stream.planes, kernel.shape
    versions = (*planes.levels.inputs, *planes.levels.versions)
    kept = sum(version.depth for version in versions if planes.held(version))
    values = shape.columns * shape.rows * kept * (kernel.problem.itemsize // 4)
    return BASE + 2 * (len(planes.levels.inputs) + len(planes.levels.finals)) + values


def _edge(problem: Problem, steps: int, gpu: GpuModel) -> EdgeShape3D | None:
    """The shape of edge tiles; None where they do not fit and are needed."""
    if not gpu.boundary_tiles_3d:
        return None
    growth = reach(problem, steps)
    if not PassKernel3D(problem, Shape3D(steps)).parted:
        return EdgeShape3D(steps, growth.below[1] + growth.above[1] + 8)
    beside = growth.below[1] + growth.above[1]
    for height, count in EDGE_ROWS:
        kernel = PassKernel3D(problem, Shape3D(steps), EdgeShape3D(steps, height)).edges
        if kernel.shared_bytes * count <= gpu.block_shared and height > beside and min(kernel.useful) > 0:
            return kernel.shape
    return None


def _memory(kernel: PassKernel3D) -> float:
    """Clocks of a multiprocessor for each cell of a pass; with few bytes in flight it waits for them."""
    planes = kernel.stream.planes
    loads, stores = len(planes.loaded), len(planes.levels.finals)
    twice = (1 / _share(kernel) - 1) * min(1.0, (loads + stores) / TWICE)
    moved = (loads * (1 + twice) + stores) * kernel.problem.itemsize / kernel.gpu.bytes_per_clock
    ahead = len(planes.loaded) * kernel.shape.ahead * planes.plane_bytes * _blocks(kernel)
    return moved * sqrt(max(1.0, BYTES_AHEAD / ahead))


def _blocks(kernel: PassKernel3D) -> int:
    """Thread blocks of a multiprocessor."""
    by_registers = kernel.gpu.registers // (_registers(kernel) * kernel.shape.threads)
    return max(
        1, min(by_registers, kernel.gpu.block_shared // kernel.stream.shared_bytes, 2048 // kernel.shape.threads)
    )


def _instructions(kernel: PassKernel3D) -> float:
    """Clocks of a multiprocessor for each cell of a pass, redundant ones included."""
    shape, levels = kernel.shape, kernel.stream.planes.levels
    cells = shape.columns * shape.rows
    operations = sum(CellProgram((w.assignment.value,)).operations for node in levels.nodes for w in node.writes)
    fields = len(levels.inputs) + len(levels.finals)
    lane = cells * operations * kernel.problem.itemsize / 4 + PER_PLANE + PER_FIELD * fields
    warps = shape.warps * _blocks(kernel)
    issued = 4 * min(MOST_ISSUED, ISSUED + PER_WARP * warps)
    more = (SQUEEZED if _registers(kernel) > _room(kernel) else 1.0) * (1.0 if shape.held else UNHELD)
    more *= JOINED if shape.joined else 1.0
    return more * lane / cells / 32 / issued / _share(kernel)


def _share(kernel: PassKernel3D) -> float:
    """The share of the cells of plain tiles that is not redundant."""
    return kernel.useful(core(kernel.problem, kernel.steps)[0] & kernel.problem.grid.box)


def _one_step(problem: Problem, gpu: GpuModel) -> float:
    """Clocks of a multiprocessor for each cell of a step, by kernels that make one."""
    plain = (core(problem, 1)[0] & problem.grid.box).size / problem.grid.box.size
    return (plain + (1 - plain) * ASIDE_COST) * _swept(problem, gpu)


def _swept(problem: Problem, gpu: GpuModel) -> float:
    """Clocks of a multiprocessor to move what kernels that make one step move for each cell."""
    moved, cells = 0, problem.grid.box.size
    for group in groups(problem):
        written = set(group.targets(problem))
        read = {r.field for member in group.members(problem) for r in member.of(problem).reads}
        full = [problem.fields[name] for name in (*(read | written), *written) if problem.fields[name].full]
        moved += sum(field.box.size for field in full)
    return moved / cells * problem.itemsize / gpu.bytes_per_clock
