"""The shape of the kernels of a 3D problem: from the problem alone, without a compiler or a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from peergrid.codegen.cuda.blocked.levels import in_most_cells, usual_updates
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.codegen.cuda.stream3d.core import streamed
from peergrid.codegen.cuda.stream3d.correctable import correctable
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel, busy_cells
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.tensors import copied
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.grid import Box
from peergrid.stencil import Problem, advanced_box, footprint
from peergrid.stencil.remember import remembered

MOST_KEPT = 72  # registers of a thread for planes that it keeps: more leave the update too few
MOST_KEPT_BY_FEW = 88  # the same in blocks of so few threads that each may have all registers that there are:
FEW_THREADS = 256
WIDE_BORDER = 1.6  # values loaded for a cell of a tile, above which blocks that keep in step are slower
BETTER = 1.25  # times fewer cells of tiles, idle ones counted: more than shapes differ in speed
BETTER_LAYERED = 1.1  # the same of shapes with layers at the ends of rows


@remembered()
def one_pass(problem: Problem, gpu: GpuModel = H200, within: Box | None = None) -> StreamKernel | None:
    """The kernels that make one step of a 3D problem in as few passes over memory as pay; None where none can.

    within: the cells that they make, of all; their tiles divide these well.
    """
    if not supported(problem):
        return None
    usual = usual_updates(problem)  # other updates alone, as of receivers between nodes, need no stream
    stages = tuple(group.stages for group in groups(problem) if any(usual[stage] for stage in group.stages))
    whole, box = tuple(range(len(problem.stages))), advanced_box(problem) & (within or problem.grid.box)
    if len(stages) > 1 and not _far(problem, whole):
        shape = _shape(problem, whole, gpu, box)
        if shape is not None:
            return StreamKernel(problem, 1, (shape,), (whole,))
    if len(stages) > 1 and not _settled(problem):
        return None
    shapes = [_shape(problem, part, gpu, box) for part in stages]
    found = [shape for shape in shapes if shape is not None]
    return StreamKernel(problem, 1, tuple(found), stages) if len(found) == len(stages) else None


def supported(problem: Problem) -> bool:
    """True if every state field of most cells has one usual update in each stage, which spans periodic axes."""
    if problem.grid.ndim != 3:
        return False
    if (problem.grid.shape[1] + 64) * (problem.grid.shape[2] + 128) * problem.itemsize >= 1 << 32:
        return False
    written: set[str] = set()
    for stage, assigned in zip(problem.stages, usual_updates(problem), strict=True):
        written |= set(assigned)
        if not assigned and any(in_most_cells(problem, update.box) for update in stage.updates):
            return False
        for update, _ in assigned.values():
            if any(signal.slopes for signal in update.signals):
                return False
            for axis, wraps in enumerate(problem.grid.periodic):
                if wraps and update.box.shape[axis] != problem.grid.shape[axis]:
                    return False
    return all(name in written for name in problem.state if in_most_cells(problem, problem.fields[name].box))


def _settled(problem: Problem) -> bool:
    """True if launches may hand on fields through memory.

    For later ones they store fields beyond a box, too, where other kernels make cells at the same time: nothing may
    change a field there later. Usual updates of a field span the same cells, so that the last one leaves none out.
    """
    needs, usual = footprint(problem, 1).targets[0], usual_updates(problem)
    for first, assigned in enumerate(usual):
        for name, (update, _) in assigned.items():
            for later in range(first + 1, len(usual)):
                again = usual[later].get(name, (update,))[0]
                others = any(other is not again for other, _ in problem.stages[later].writers(name))
                if again.box != update.box or (others and not needs[first][name].within(needs[later][name])):
                    return False
    return True


def _shape(problem: Problem, stages: tuple[int, ...], gpu: GpuModel, box: Box) -> StreamShape | None:
    """The first shape that fits or, of those with tensor copies, the first whose tiles divide the box much better; with
    layers at the ends of rows, of which every plane waits, the one whose tiles divide it best.
    """
    found = (shape for shape in _shapes(problem, stages, gpu) if _fits(Rings(problem, 1, shape, stages), gpu))
    first = next(found, None)
    if first is None or not first.tensor:
        return first
    layered = Rings(problem, 1, first, stages).layered
    tiled = streamed(problem, 1, box)[0] if layered else box
    if tiled.empty:
        return first
    shapes = (first, *(shape for shape in found if shape.tensor))
    busy = {shape: busy_cells(Rings(problem, 1, shape, stages), tiled, gpu) for shape in shapes}
    times = BETTER_LAYERED if layered else BETTER
    better = [shape for shape in shapes if times * busy[shape] < busy[first]] or [first]
    return min(better, key=busy.__getitem__) if layered else better[0]


def _fits(rings: Rings, gpu: GpuModel) -> bool:
    """True if threads have the registers and blocks the shared memory for some rings, whose border suits the shape."""
    shape, size = rings.shape, rings.problem.itemsize
    if (rings.layered and not correctable(rings)) or (shape.tensor and not copied(rings)):
        return False
    if shape.lead and rings.border > WIDE_BORDER:
        return False
    kept = rings.kept * shape.rows_each * rings.width * size // 4
    few = shape.threads(size) <= FEW_THREADS
    return rings.fits and kept <= (MOST_KEPT_BY_FEW if few else MOST_KEPT) and rings.shared_bytes <= gpu.most_shared


def _shapes(problem: Problem, stages: tuple[int, ...], gpu: GpuModel) -> Iterator[StreamShape]:
    rings = Rings(problem, 1, StreamShape(), stages)
    if _far(problem, stages):
        shapes = gpu.streams.far
    elif len(rings.levels.nodes) > 1:
        shapes = gpu.streams.layered if rings.layered else gpu.streams.several
    else:
        shapes = gpu.streams.many if len(rings.beside) >= gpu.many_reads else gpu.streams.few
    growth = rings.reads.growth.below[2] + rings.reads.growth.above[2] > 0
    for shape in shapes:
        if shape.tensor and not gpu.tensor_copies:
            continue
        if shape.around and problem.itemsize > 4:  # values of 8 bytes take too many registers
            continue
        columns = shape.columns * 4 // problem.itemsize
        lead = 0 if rings.layered else shape.lead  # blocks with and without layers are not held together
        yield replace(shape, columns=columns + rings.width if growth else columns, lead=lead)


def _far(problem: Problem, stages: tuple[int, ...]) -> bool:
    """True if some stage reads cells two and more away in its plane."""
    return any(max(abs(use.row), abs(use.column)) > 1 for use in Rings(problem, 1, StreamShape(), stages).beside)
