"""The shape of a pass over a 2D grid: chosen from the problem alone, without a compiler or a device.

A pass of the streaming kernel keeps its rows in registers: `BASE` of them and, for each column of a lane, one (two in
double precision) for every row that some value of a field keeps. The compiler's reports bear this out within a tenth.
The worth of a shape is the steps it makes times the share of its columns that are not redundant.

GPUs with less shared memory than those that shapes were measured on get the same bits by thread blocks of fewer warps,
with boundary tiles that are narrower or load fewer rows ahead.

gpu: the model of the GPU.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from peergrid.codegen.cuda.blocked.levels import levels, usual_fields, usual_updates
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import ROOMY, Shape
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.codegen.norm import NORM_ROWS
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

BASE = 24
MOST_REGISTERS = 216  # of 255: what a compiler adds must not spill
FEW_BYTES = 6 << 10  # of shared memory for a warp: then rows are loaded further ahead
MOST_STEPS = 16
LONG = 128  # rows of a tile in passes of one step, at most
BOUNDARY_COLUMNS = 16  # useful columns of a boundary tile, at least
NARROW = 32  # columns of the narrowest boundary tile
ENOUGH = 10  # warps of a multiprocessor: for more there are hardly registers


@remembered()
def pass_kernel(
    problem: Problem, steps: int, norm: str | None = None, least: int = 2, gpu: GpuModel = H200
) -> PassKernel | None:
    """The kernel that makes `steps` steps of a 2D problem in one pass; None where there is none.

    Fewer than `least` are left to other kernels, unless the norm of each step's change is asked for; so are signals
    that differ from cell to cell.
    """
    if problem.grid.ndim != 2 or problem.travelling or not (1 if norm else least) <= steps <= MOST_STEPS:
        return None
    if not usual_fields(problem):  # all are confined to a part of the grid: there is nothing to stream
        return None
    widths = (4,) if norm else (4, 2)
    found = [kernel for columns in widths if (kernel := _kernel(problem, steps, columns, norm)) is not None]
    usual = max(found, key=worth, default=None)
    best = None if usual is None else smaller(usual, gpu)
    return best if best is None or steps > 1 or norm else replace(_beside(best, gpu), most_rows=LONG)


def one_step(problem: Problem, cells: int, gpu: GpuModel = H200) -> PassKernel | None:
    """The kernel that makes all stages of one step of a 2D problem in one pass, over boxes of so many cells.

    None where a pass for each stage takes less: boundary tiles cost a small box more than a second pass over it, and
    one pass may move hardly fewer bytes, as where fields between stages are stored.
    """
    if len(groups(problem)) == 1 or cells < gpu.streamed_cells:
        return None
    if levels(problem, 1).moved > gpu.streamed_bytes * _moved_by_groups(problem):
        return None
    return pass_kernel(problem, 1, least=1, gpu=gpu)


def _moved_by_groups(problem: Problem) -> int:
    """The values of a cell that kernels of each group read and write; what it changes elsewhere is carried over."""
    count = 0
    for group in groups(problem):
        made = [assignment for stage in group.stages for _, assignment in usual_updates(problem)[stage].values()]
        read = {read.field for assignment in made for read in assignment.reads if problem.fields[read.field].full}
        written = set(group.targets(problem)) & set(usual_fields(problem))
        count += len(written) + len(read | (written - {assignment.target for assignment in made}))
    return count


def worth(kernel: PassKernel) -> float:
    """The steps of a pass times the share of its columns that are not redundant."""
    return kernel.shape.steps * kernel.cut.columns / kernel.shape.width


def _beside(kernel: PassKernel, gpu: GpuModel) -> PassKernel:
    """The kernel with boundary tiles that fit into the shared memory which blocks of interior tiles leave, if they
    can.
    """
    left = gpu.shared % (kernel.stream.shared_bytes + gpu.block_reserved) - gpu.block_reserved
    shorter = (replace(kernel, boundary_ahead=ahead) for ahead in range(kernel.boundary_ahead, 0, -1))
    return next((made for made in shorter if made.boundary_tile.shared_bytes <= left), kernel)


def registers(problem: Problem, steps: int, columns: int, norm: str | None = None) -> int:
    """The number of registers of a lane of an interior tile, by the rows that it keeps."""
    rows = sum(value.depth for value in levels(problem, steps, norm=norm).made)
    return BASE + columns * rows * (problem.itemsize // 4)


def _kernel(problem: Problem, steps: int, columns: int, norm: str | None) -> PassKernel | None:
    if registers(problem, steps, columns, norm) > MOST_REGISTERS:
        return None
    for width in (64, 128):
        kernel = PassKernel(problem, _shape(problem, steps, columns, norm), width, norm)
        if norm:
            kernel = replace(kernel, boundary_rows=NORM_ROWS, layer_rows=NORM_ROWS)
        if registers(problem, steps, columns, norm) > ROOMY and kernel.layers:
            kernel = replace(kernel, shape=replace(kernel.shape, registers=ROOMY))
        if kernel.cut.columns > 0 and _fits(kernel, H200):
            return kernel
    return None


def _shape(problem: Problem, steps: int, columns: int, norm: str | None) -> Shape:
    """Kernels with norms have long texts: warps of large blocks stay close together and fetch them once."""
    far = Shape(steps, columns, ahead=6, warps=8) if norm else Shape(steps, columns, ahead=4)
    few = PassKernel(problem, far).stream.shared_bytes <= FEW_BYTES * far.warps
    return far if few else Shape(steps, columns, ahead=2)


def smaller(kernel: PassKernel, gpu: GpuModel) -> PassKernel | None:
    """The kernel within the shared memory of a GPU's thread blocks; None where it has no use for so little."""
    if gpu.block_shared >= H200.block_shared:
        return kernel
    counts = range(kernel.shape.warps, 0, -1)
    blocks = [replace(kernel, shape=replace(kernel.shape, warps=warps)) for warps in counts]
    interior = _bounded(max(blocks, key=lambda made: _resident(made, gpu)), gpu)
    variants = product((kernel.boundary_width, NARROW), range(kernel.boundary_ahead, 0, -1))
    narrower = (replace(interior, boundary_width=width, boundary_ahead=ahead) for width, ahead in variants)
    return next((made for made in narrower if _fits(made, gpu)), None)


def _bounded(kernel: PassKernel, gpu: GpuModel) -> PassKernel:
    """The kernel with the number of blocks of interior tiles that a multiprocessor works on, as a hint for the
    compiler.

    Without it, compilers for these GPUs leave registers for more than there is shared memory for, and spill.
    """
    blocks = max(1, _resident(kernel, gpu) // kernel.shape.warps)
    return replace(kernel, shape=replace(kernel.shape, blocks=blocks))


def _resident(kernel: PassKernel, gpu: GpuModel) -> int:
    """The warps of interior tiles that a multiprocessor works on, as far as they count."""
    blocks = gpu.blocks_by_shared(kernel.stream.shared_bytes)
    return min(ENOUGH, blocks * kernel.shape.warps)


def _fits(kernel: PassKernel, gpu: GpuModel) -> bool:
    fits = max(kernel.stream.shared_bytes, kernel.boundary_tile.shared_bytes) <= gpu.block_shared
    return fits and kernel.stream.in_registers and kernel.cut.boundary_columns >= BOUNDARY_COLUMNS
