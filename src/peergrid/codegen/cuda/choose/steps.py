"""The number of steps of a pass: chosen from the problem alone, without a compiler or a device.

In which shape is for `shape1d`, `shape2d` and `shape3d` to say. Which of the lengths a run makes is settled by a trial
(`trials.trial`); it changes no bit.

gpu: the model of the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.choose import shape1d, shape2d, shape3d
from peergrid.codegen.cuda.choose.shape1d import pass1d
from peergrid.codegen.cuda.choose.shape2d import one_step, pass_kernel
from peergrid.codegen.cuda.choose.shape3d import pass3d
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.norm import NORM_ALIGN
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

LENGTHS = {1: (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2), 2: (8, 6, 4, 3, 2), 3: (8, 6, 4, 3, 2)}
"""By the axes of the grid. Tiles of long lines have few ghost cells: there the arithmetic bounds the steps."""
MOST_STEPS = max(LENGTHS[1])
NORM_LENGTHS = (7, 6, 4, 3, 2)  # the text of 8 steps with norms is too long to be fetched in time


def supports(problem: Problem, steps: int, gpu: GpuModel = H200, norm: str | None = None) -> bool:
    """True where one pass can make that many steps: one always, several where the reach leaves columns over."""
    return steps == 1 or several_steps(problem, steps, norm, gpu) is not None


def several_steps(problem: Problem, steps: int, norm: str | None = None, gpu: GpuModel = H200) -> TiledKernel | None:
    """The kernel that makes `steps` steps of a problem of any dimension in one pass; None where there is none.

    One step is left to other kernels, unless the norm of each step's change is asked for; so are signals that differ
    from cell to cell.
    """
    if problem.travelling:
        return None
    if problem.grid.ndim == 1:
        return pass1d(problem, steps, gpu) if steps > 1 and norm is None else None
    if problem.grid.ndim == 3:
        return pass3d(problem, steps, gpu) if steps > 1 and norm is None else None
    return pass_kernel(problem, steps, norm, gpu=gpu)


def split_at(problem: Problem, partition: Partition, norm: str | None = None, gpu: GpuModel = H200) -> Index:
    """The multiples at which passes split what a device owns, axis by axis; empty where cells that keep their value
    had best go with the boundary region: to a streaming kernel a strip of those costs more than it spares.
    """
    if norm:
        return NORM_ALIGN
    largest = max(partition.owned(device).size for device in range(partition.devices))
    return () if one_step(problem, largest, gpu) is None else (1, 1)


@remembered()
def steps_per_pass(problem: Problem, most: int = MOST_STEPS, norm: str | None = None, gpu: GpuModel = H200) -> int:
    """The number of steps, at most `most`, that passes had best make; 1 where more are not worth it or not possible."""
    return lengths(problem, most, norm, gpu)[0]


def lengths(problem: Problem, most: int = MOST_STEPS, norm: str | None = None, gpu: GpuModel = H200) -> tuple[int, ...]:
    """The numbers of steps, at most `most`, that a pass may be worth making, the most promising first; 1 if none is."""
    usual = NORM_LENGTHS if norm else LENGTHS[problem.grid.ndim]
    allowed = [steps for steps in usual if steps <= most]
    kernels = [kernel for steps in allowed if (kernel := several_steps(problem, steps, norm, gpu)) is not None]
    worthy = sorted((kernel for kernel in kernels if _worth(kernel) > 1), key=_worth, reverse=True)
    return tuple(kernel.steps for kernel in worthy) or (1,)


def block_of(problem: Problem, depth: int, gpu: GpuModel = H200, norm: str | None = None) -> int:
    """The steps of a pass for `depth` steps between exchanges: the fewest passes there can be, of even length."""
    longest = next(steps for steps in range(depth, 0, -1) if supports(problem, steps, gpu, norm))
    return -(-depth // -(-depth // longest))


def _worth(kernel: TiledKernel) -> float:
    worths: tuple[Callable[[Any], float], ...] = (shape1d.worth, shape2d.worth, shape3d.worth)
    return worths[kernel.problem.grid.ndim - 1](kernel)
