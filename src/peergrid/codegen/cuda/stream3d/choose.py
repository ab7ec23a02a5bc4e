"""Which shape the kernels of a 3D problem take: from the problem alone, without a compiler or a device."""

from __future__ import annotations

from itertools import product

from peergrid.codegen.cuda.blocked.levels import plain_updates
from peergrid.codegen.cuda.blocked.plain import unbounded
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.shape import StreamShape
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

TILES = ((64, 32, 2), (64, 16, 2), (64, 16, 1), (32, 16, 1), (32, 8, 1))  # columns, rows, rows of a thread


@remembered()
def one_pass(problem: Problem, gpu: GpuModel = H200) -> StreamKernel | None:
    """The kernels that make one step of a 3D problem in as few passes over memory as pay; None where none can."""
    if not supported(problem):
        return None
    stages = tuple(group.stages for group in groups(problem))
    shapes = [_shape(problem, part, gpu) for part in stages]
    found = [shape for shape in shapes if shape is not None]
    return StreamKernel(problem, 1, tuple(found), stages) if len(found) == len(stages) else None


def supported(problem: Problem) -> bool:
    """Whether every state field of most cells has one usual update in each stage, which spans periodic axes."""
    if problem.grid.ndim != 3:
        return False
    half = problem.grid.box.size / 2
    written: set[str] = set()
    for stage, plain in zip(problem.stages, plain_updates(problem), strict=True):
        written |= set(plain)
        if not plain and any(update.box.size > half for update in stage.updates):
            return False
        for update, _ in plain.values():
            if unbounded(problem, update.box).shape != unbounded(problem, problem.grid.box & update.box).shape:
                return False
            for axis, wraps in enumerate(problem.grid.periodic):
                if wraps and update.box.shape[axis] != problem.grid.shape[axis]:
                    return False
    return all(name in written for name in problem.state if problem.fields[name].box.size > half)


def _shape(problem: Problem, stages: tuple[int, ...], gpu: GpuModel) -> StreamShape | None:
    """The first shape that fits."""
    for (columns, rows, each), ahead in product(TILES, (3, 2, 1)):
        shape = StreamShape(columns, rows, each, ahead)
        rings = Rings(problem, 1, shape, stages)
        if rings.shared_bytes <= gpu.block_shared and rings.fits:
            return shape
    return None
