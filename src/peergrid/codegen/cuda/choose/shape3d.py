"""The shape of a pass over a 3D grid: by a forecast from the problem alone, without a compiler or a device.

A thread keeps `BASE` registers, and four for each row of its cells in every plane that it keeps and, while a node
works, a few more. A plane of a tile takes as long as the slowest of three: instructions, of which a share is issued;
shared memory; loads and stores, the borders of tiles included. Barriers add to that, and where warps wait for each
other within a plane, the slowest does not hide the others whole. A pass takes as long as the block with the most tiles.
The constants follow shapes that were measured on an H200; they order the shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from math import ceil, fsum, prod

from peergrid.codegen.cuda.choose.one_step3d import supported
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.codegen.cuda.stream3d import tiles
from peergrid.codegen.cuda.stream3d.core import core, unmirrored_by
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel, in_one
from peergrid.codegen.cuda.stream3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.stream3d.rotation import rotation
from peergrid.codegen.cuda.stream3d.tensors import copied
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.stencil import Problem
from peergrid.stencil.problem import Assignment
from peergrid.stencil.program import CellProgram
from peergrid.stencil.remember import remembered

MOST_STEPS = 4
COLUMNS, NARROW = (128, 136, 112, 72, 64), (32, 16)  # of single precision; narrow where no others fit
ROWS = (48, 39, 36, 33, 32, 28, 24, 20, 16, 14, 12, 10, 8)
ROWS_EACH = (3, 2, 1)
BASE, LIVE = 20, 2 / 3  # registers of a thread; values in the making for each result of a node
MOST_REGISTERS = 230  # more than so many by this count are spilled now and then
LEAST_WARPS = 2
WINDOW = 3  # planes of a value that a stage by itself reads: in so many clocks each is in the registers it began in
PER_WARP, MOST_ISSUED = 0.08, 0.7  # share of the clocks in which instructions are issued
PER_ROW, SPLIT = 12, 4  # instructions of a thread for a row of its cells beside arithmetic, for each node; and where
# neighbours in a row are in other warps
PER_FIELD = 25  # and for each plane that it loads, unless by tensor copies, or stores
PER_CLOCK = 60
BORDER, DRIFT = 0.4, 0.006  # of a cell of a tile's border, which caches have, by one that comes from memory; more for
# each plane of a tile, as blocks drift apart
HIDDEN = 4.0  # the norm of the parts of a plane: the higher, the better the slowest hides the others
BARRIER, SPLIT_BARRIER = 150, 0.3  # clocks of a multiprocessor; what of these is left where nobody waits at once
REMAINDER_COST = 4.5  # of a cell of a remainder, by what one step moves
OTHERS_COST = 4.0  # of a cell with other updates than the usual ones, where a step is by itself


@remembered()
def pass3d(problem: Problem, steps: int, gpu: GpuModel = H200) -> PassKernel3D | None:
    """The kernel that makes `steps` steps of a 3D problem in one pass; None where there is none.

    gpu: the model of the GPU.
    """
    if not 1 <= steps <= MOST_STEPS or not supported(problem):
        return None
    for columns in (COLUMNS, NARROW):
        found = []
        for shape in _shapes(problem, columns):
            kernels = (PassKernel3D(problem, steps, one) for one in _ways(problem, steps, shape, gpu))
            found += list(islice((kernel for kernel in kernels if _splits(kernel) and _fits(kernel, gpu)), 1))
        if found:
            return min(found, key=lambda kernel: _clocks(kernel, gpu))
    return None


def across_edges(problem: Problem, steps: int, gpu: GpuModel) -> StreamKernel | None:
    """The kernel that makes `steps` steps of a periodic 3D problem in one pass and can read across its edges; None
    where a pass leaves cells to other kernels.
    """
    kernel = pass3d(problem, steps, gpu) if any(problem.grid.periodic) else None
    return None if kernel is None or kernel.leaves_remainder else in_one(problem, steps, kernel.shape)


def worth(kernel: PassKernel3D, gpu: GpuModel = H200) -> float:
    """The rate over that of one step after another."""
    problem, grid = kernel.problem, kernel.problem.grid.box
    inside = core(problem, kernel.steps)[0] & unmirrored_by(problem, kernel.steps) & grid
    left = REMAINDER_COST * kernel.steps * _moved(problem, gpu) * (grid.size - inside.size) / gpu.multiprocessors
    return _one_step(problem, gpu) * kernel.steps / (_clocks(kernel, gpu) + left)


def _shapes(problem: Problem, widths: tuple[int, ...]) -> Iterator[StreamShape]:
    unroll = WINDOW if len(problem.stages) == 1 else 1
    for columns, rows, each in product(widths, ROWS, ROWS_EACH):
        shape = StreamShape(columns * 4 // problem.itemsize, rows, each, 2, own=True, unroll=unroll)
        if rows % each == 0 and LEAST_WARPS * 32 <= shape.threads(problem.itemsize) <= 1024:
            yield shape


def _ways(problem: Problem, steps: int, shape: StreamShape, gpu: GpuModel) -> Iterator[StreamShape]:
    """A shape with all ways of copies and barriers, the fastest first."""
    ways = [shape, replace(shape, ahead=1)]
    if len(problem.stages) == 1 and steps > 1:
        ways.insert(0, replace(shape, ahead=3, split_barrier=True))
    if gpu.tensor_copies:
        yield from (replace(way, tensor=True) for way in ways)
    yield from ways


def _splits(kernel: PassKernel3D) -> bool:
    """True unless the shape asks for a barrier in two halves that the kernel cannot have."""
    return kernel.rings.split_barrier == kernel.shape.split_barrier


def _fits(kernel: PassKernel3D, gpu: GpuModel) -> bool:
    if not kernel.rings.fits or kernel.rings.shared_bytes > gpu.most_shared:
        return False
    if kernel.shape.tensor and not copied(kernel.rings):
        return False
    warps = ceil(kernel.shape.threads(kernel.problem.itemsize) / 32 / 4)  # of a quarter of a multiprocessor
    return registers(kernel) <= min(MOST_REGISTERS, gpu.registers // 4 // (32 * warps) // 8 * 8)


def registers(kernel: PassKernel3D) -> float:
    """Registers of a thread."""
    rings = kernel.rings
    results = max(len(node.writes) for node in rings.levels.nodes)
    return BASE + 4 * kernel.shape.rows_each * (rings.kept + 1 + LIVE * results)


def _clocks(kernel: PassKernel3D, gpu: GpuModel) -> float:
    """Clocks of a multiprocessor for a pass over the grid, by the block with the most to do."""
    problem, rings = kernel.problem, kernel.rings
    box = core(problem, kernel.steps)[0] & unmirrored_by(problem, kernel.steps) & problem.grid.box
    if box.empty:
        return 0.0
    across = prod(map(len, tiles.across(rings, box)))
    least = tiles.least_planes(rings, box, gpu.multiprocessors)
    count = tiles.pieces(rings, box, across, gpu.multiprocessors, least)
    waves, planes = across * count / gpu.multiprocessors, ceil(box.shape[0] / count)
    return (ceil(waves) + waves) / 2 * (planes + rings.early) * _plane(kernel, gpu, planes)


@remembered(256)
def _operations(problem: Problem, assignment: Assignment) -> int:
    """The operations of an assignment for a cell."""
    return CellProgram((assignment.value,)).operations


def _plane(kernel: PassKernel3D, gpu: GpuModel, planes: int) -> float:
    """Clocks of a multiprocessor for one plane of a tile of so many."""
    problem, rings, shape = kernel.problem, kernel.rings, kernel.shape
    nodes, each = rings.levels.nodes, shape.rows_each
    operations = sum(_operations(problem, w.assignment) for node in nodes for w in node.writes)
    loads, stores = rings.loaded, len(rings.levels.finals)
    moved = stores if shape.tensor else len(loads) + stores
    beside = PER_ROW + SPLIT * shape.split(problem.itemsize)
    thread = each * (4 * operations + beside * len(nodes)) + PER_FIELD * moved + PER_CLOCK
    warps = shape.threads(problem.itemsize) // 32
    issue = thread * warps / 4 / min(MOST_ISSUED, PER_WARP * warps)
    row = shape.columns * problem.itemsize / 128  # wavefronts of shared memory for a row of the tile
    shared = 0.0
    for ring in rings.rings.values():
        others = (ring.above + ring.below) / each + 0.5 * ((ring.left > 0) + (ring.right > 0))
        shared += row * shape.rows * (others + 1)
    useful = prod(tiles.useful(rings))
    borders = sum(ring.values(shape, 1) / ring.planes - useful for ring in loads)
    borders *= BORDER + DRIFT * planes
    memory = ((len(loads) + stores) * useful + borders) * problem.itemsize / gpu.bytes_per_clock
    parts, waits = (issue, shared, memory), sum(map(rings.waits, nodes))
    slowest: float = fsum(part**HIDDEN for part in parts) ** (1 / HIDDEN) if waits else max(parts)
    return slowest + BARRIER * (SPLIT_BARRIER if rings.split_barrier else 1 + waits)


def _moved(problem: Problem, gpu: GpuModel) -> float:
    """Clocks of a multiprocessor to move what kernels that make one step move for each cell."""
    moved, cells = 0, problem.grid.box.size
    for group in groups(problem):
        written = set(group.targets(problem))
        read = {r.field for member in group.members(problem) for r in member.of(problem).reads}
        full = [problem.fields[name] for name in (*(read | written), *written) if problem.fields[name].full]
        moved += sum(field.box.size for field in full)
    return moved / cells * problem.itemsize / gpu.bytes_per_clock


def _one_step(problem: Problem, gpu: GpuModel) -> float:
    """Clocks of a multiprocessor for one step of the grid, by kernels that make one."""
    if (found := rotation(problem)) is not None:
        problem = found.step
    cells, usual = problem.grid.box.size, (core(problem, 1)[0] & problem.grid.box).size
    return (usual + (cells - usual) * OTHERS_COST) * _moved(problem, gpu) / gpu.multiprocessors
