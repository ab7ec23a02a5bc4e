"""The shape of a pass over a 1D grid: by a forecast from the problem alone, without a compiler or a device.

A lane keeps `BASE` registers and, for each of its cells, one (two in double precision) for every field that it holds,
half as many for what a stage makes of them. A pass takes as long as the slower of memory and instructions, both in
clocks of a multiprocessor, of which the share for ghost cells is redundant. The constants follow eight passes of a
three-point stencil on an H200 within eight percent (`benchmarks/results/h200-x2-wrapping.json`).
"""

from __future__ import annotations

from dataclasses import replace

from peergrid.codegen.cuda.blocked.levels import usual_fields
from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked1d.shape import Shape1D
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes, operations
from peergrid.stencil.remember import remembered

BASE = 32
MOST_REGISTERS = 128
LANES = {4: 128, 8: 64}  # results of a multiprocessor in a clock, by bytes of a value
ISSUED = 0.78  # share of the clocks in which instructions are issued
LANE_BYTES, SCATTERED = 128, 1.5  # of a lane's cells of a field; how much longer memory takes where they are so many
SHUFFLED = 4  # what a shuffle costs, in such results
CELLS = (32, 16, 8, 4)  # of a lane
MOST = (256, 128, 64, 32)  # of a boundary tile, as far as shared memory allows
LEAST_USEFUL = 0.5  # share of a warp's cells


@remembered()
def pass1d(problem: Problem, steps: int, gpu: GpuModel = H200) -> PassKernel1D | None:
    """The kernel that makes `steps` steps of a 1D problem in one pass; None where there is none."""
    shapes = (Shape1D(steps, cells) for cells in CELLS)
    kernels = (PassKernel1D(problem, shape) for shape in shapes)
    found = [smaller for kernel in kernels if _possible(kernel) and (smaller := _smaller(kernel, gpu)) is not None]
    return max(found, key=lambda kernel: worth(kernel, gpu), default=None)


def worth(kernel: PassKernel1D, gpu: GpuModel = H200) -> float:
    """The rate of the pass over that of passes of one step, which take as long as memory does."""
    problem, tile = kernel.problem, kernel.tile
    memory = minimal_bytes(problem) / problem.grid.box.size / gpu.bytes_per_clock
    apart = kernel.shape.cells * problem.itemsize / LANE_BYTES
    shuffles = sum(left + right for reads in tile.reads for left, right in reads.values()) / kernel.shape.cells
    results = operations(problem) / problem.grid.box.size + SHUFFLED * shuffles
    instructions = kernel.steps * results / (LANES[problem.itemsize] * ISSUED)
    return (
        kernel.steps
        * memory
        / max(memory * (1 + SCATTERED * apart**2), instructions)
        * tile.useful
        / kernel.shape.width
    )


def registers(kernel: PassKernel1D) -> int:
    """The number of registers of a lane of an interior tile."""
    words = kernel.problem.itemsize // 4
    return BASE + 3 * len(usual_fields(kernel.problem)) * kernel.shape.cells * words // 2


def _possible(kernel: PassKernel1D) -> bool:
    tile, shape = kernel.tile, kernel.shape
    useful = tile.useful >= LEAST_USEFUL * shape.width
    return useful and tile.reach <= shape.cells and registers(kernel) <= MOST_REGISTERS


def _smaller(kernel: PassKernel1D, gpu: GpuModel) -> PassKernel1D | None:
    """The kernel with boundary tiles for which a block has shared memory."""
    made = (replace(kernel, shape=replace(kernel.shape, most=most)) for most in MOST)
    return next((one for one in made if one.tile.shared_bytes <= gpu.block_shared), None)
