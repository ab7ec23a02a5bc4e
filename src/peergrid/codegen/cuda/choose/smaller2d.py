"""The kernels of a 2D pass on GPUs with less shared memory than those they were measured on: the same bits, in thread
blocks of fewer warps and with boundary tiles that are narrower or load fewer rows ahead.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.gpu_model import H200, GpuModel

BOUNDARY_COLUMNS = 16  # useful columns of a boundary tile, at least
NARROW = 32  # columns of the narrowest boundary tile
ENOUGH = 10  # warps of a multiprocessor: for more there are hardly registers


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
    return fits and kernel.cut.boundary_columns >= BOUNDARY_COLUMNS
