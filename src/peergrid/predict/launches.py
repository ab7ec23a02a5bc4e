"""The launches of a pass on a device, as numbers: blocks, bytes, arithmetic, and the longest chain of work.

Nothing is compiled: registers, and hence the number of co-resident blocks, are those that the choice of kernels
assumes. A family of kernels is a row of `LAUNCHES`; a family without a row has the costs of one-step kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peergrid.codegen.cuda.blocked.instructions import instructions, placed, slowest
from peergrid.codegen.cuda.blocked.levels import levels
from peergrid.codegen.cuda.blocked.reach import overhead
from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.choose import shape1d, shape2d, shape3d
from peergrid.codegen.cuda.common.program import Launch, Program
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.onestep import OneStepKernels, OneStepLaunch
from peergrid.codegen.cuda.onestep.regions import Later, Variant
from peergrid.codegen.cuda.persistent_choice import resident as persistent_resident
from peergrid.codegen.cuda.stream3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.stream3d.remainder import remainders
from peergrid.grid import Box
from peergrid.grid.box import intersect, subtract
from peergrid.runtime.cuda.lowering.one_step import OneStepPlan
from peergrid.runtime.cuda.lowering.plan import KernelPlan
from peergrid.runtime.cuda.lowering.slabs import SlabsPlan
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan
from peergrid.runtime.cuda.lowering.tiled import SummedPlan, TiledPlan
from peergrid.schedule import Layout
from peergrid.stencil import Problem
from peergrid.stencil.program import CellProgram
from peergrid.stencil.remember import remembered

Boxes = tuple[Box, ...]
THREADS, BLOCKS = 2048, 32  # of a multiprocessor, at most
BOUNDARY_REGISTERS, STRIP_REGISTERS, STREAM_REGISTERS, SINGLE_REGISTERS = 64, 100, 144, 48  # of a thread
WARP = 32
WARPS = 4  # of a boundary tile
FILLED = 0.5  # relative cost of the rows beyond its own, in which the pipeline of a tile fills and empties
STRIP_COLUMNS = 2.0  # of a lane of a boundary strip
BARRIER = 24  # instructions in the time of a block's barrier
ROW, ROW_FIELD = 24, 6  # the same for each row that a lane streams, and for each field of it


@dataclass(frozen=True, slots=True)
class KernelWork:
    """One launch.

    family: of the kernel; slots: blocks that run on a GPU at once; moved: bytes of device memory, read and written;
    touched: bytes of the arrays accessed; results: float32 results of arithmetic, redundant ones included; chain:
    dependent results of one lane in the longest sequence of tiles; concurrent, waits: as in `KernelLaunch`.
    """

    family: str
    blocks: int
    slots: int
    moved: float
    touched: float
    results: float
    chain: float
    concurrent: bool = False
    waits: bool = False


@dataclass(frozen=True)
class Site:
    """The place of a pass: the layout, the device, and what kernels are chosen for.

    made: the problem that kernels compute, if it is not the layout's, for example with rotating fields.
    """

    layout: Layout
    device: int
    gpu: GpuModel
    made: Problem | None = None

    @property
    def problem(self) -> Problem:
        return self.made or self.layout.problem

    @property
    def recorded(self) -> tuple[int, ...]:
        owned = self.layout.partition.owned(self.device)
        return self.problem.receivers_in(owned, range(len(self.problem.receivers)))


def launches(made: KernelPlan, site: Site, boxes: Boxes) -> tuple[KernelWork, ...]:
    """The launches of a pass over boxes of a device, in the order in which they are issued."""
    return tuple(LAUNCHES[type(made)](made, site, boxes))


# -- one step ------------------------------------------------------------------------------------------------------


def _by_regions(made: Any, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    yield from single_steps(replace(site, made=made.setting.problem), boxes)


def single_steps(site: Site, boxes: Boxes, later: Later | None = None) -> Iterator[KernelWork]:
    """The launches of one step over some boxes by the kernels of `onestep`; later: as in `OneStepPlan`."""
    carries = later is not None or site.problem.grid.ndim < 3
    kernels = OneStepKernels.of(site.problem, [boxes], site.gpu, carries=carries, later=(later,))
    for launch in kernels.launches(boxes, site.recorded, later):
        yield _single(site, kernels, launch, _touched(site.problem, boxes))


def _single(site: Site, kernels: OneStepKernels, launch: OneStepLaunch, touched: float) -> KernelWork:
    kind, _, number = launch.kernel.partition("_")
    volume = "3D" if site.problem.grid.ndim == 3 else ""
    if kind == "record":
        return KernelWork("utility", 1, 1, 0, 0, 0, 0)
    if kind == "wide":
        parts = [(launch.box, kernels.wide[int(number)])]
    else:
        parts = [(box, (kernels.cells if kind == "cells" else kernels.rows)[at]) for at, box in launch.regions]
    moved = sum(box.size * _fields(site.problem, variant) for box, variant in parts) * site.problem.itemsize
    results = sum(box.size * _results(site.problem, variant) for box, variant in parts)
    resident = min(THREADS // launch.threads, site.gpu.registers // (launch.threads * SINGLE_REGISTERS))
    slots = resident * site.gpu.multiprocessors
    family = f"{'one step' if kind == 'wide' else 'one step, mixed'}{' ' + volume if volume else ''}"
    cells = max(1, sum(box.size for box, _ in parts))
    chain = results / cells * -(-launch.blocks // slots)
    return KernelWork(family, launch.blocks, slots, moved, touched, results, chain, launch.concurrent)


@remembered()
def _fields(problem: Problem, variant: Variant) -> int:
    """Values of a cell that a kernel of one step reads and writes."""
    read = {r.field for member in variant.members for r in member.of(problem).reads}
    carried = set(variant.stored) - {member.of(problem).target for member in variant.members}
    named = [name for name in read | carried if problem.fields[name].full]
    return len(named) + len(variant.stored)


@remembered()
def _results(problem: Problem, variant: Variant) -> float:
    """Results of arithmetic of a cell, in single precision."""
    assignments = tuple(member.of(problem).value for member in variant.members)
    return CellProgram(assignments).operations * problem.itemsize / 4 if assignments else 0.0


# -- several steps in 1D and 2D, and one in 2D ---------------------------------------------------------------------


def _by_tiles(made: Any, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    kernel = made.kernel
    if isinstance(kernel, PassKernel1D):
        yield from _tiles1d(kernel, site, boxes)
    elif isinstance(kernel, PassKernel3D):
        yield from _with_remainder(kernel, site, boxes)
    else:
        yield from tiles2d(getattr(kernel, "made", kernel), site, boxes)


KINDS = ("boundary", "strip", "interior")


def tiles2d(kernel: PassKernel, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    """Boundary tiles and strips, then interior ones beside them."""
    problem, steps, gpu = site.problem, kernel.steps, site.gpu
    registers = min(255, shape2d.registers(problem, steps, kernel.shape.columns, kernel.norm))
    made = kernel if kernel.layer is None else kernel.around(registers)
    slots = _slots(gpu, made.boundary, BOUNDARY_REGISTERS), _slots(gpu, made.interior, registers)
    found: dict[str, list[Launch]] = {}
    for box in boxes:
        for launch in made.shorter(box, *slots).launches(box, slots[1], site.recorded):
            interior, strip = launch.program is made.interior, launch.program == made.layer
            found.setdefault("interior" if interior else "strip" if strip else "boundary", []).append(launch)
    used = {"interior": registers, "strip": STRIP_REGISTERS, "boundary": BOUNDARY_REGISTERS}
    columns = {
        "interior": kernel.shape.columns,
        "strip": STRIP_COLUMNS,
        "boundary": kernel.boundary_width / WARP / WARPS,
    }
    kinds, touched = [kind for kind in KINDS if kind in found], _touched(problem, boxes)
    for kind in kinds:
        regions = np.concatenate([launch.regions for launch in found[kind]])
        row = _rows_cost(kernel, kind, regions, columns[kind])
        lanes = WARP * (WARPS if kind == "boundary" else 1)
        work = _tiled(site, regions, found[kind][0].program, steps, row, lanes, used[kind], touched)
        plain = kind == "strip" and not any(_absorbs(problem, strip.box) for strip in kernel.strips)
        family = f"{'plain ' if plain else ''}{kind} 2D{', one step' if steps == 1 else ''}"
        yield replace(work, family=family, concurrent=kind != kinds[-1])


def _rows_cost(kernel: PassKernel, kind: str, regions: np.ndarray[Any, Any], columns: float) -> np.ndarray[Any, Any]:
    """Instructions of a lane for a row of each tile."""
    problem, steps = kernel.problem, kernel.steps
    if kind == "interior":
        return np.full(len(regions), _row(problem, steps, columns))
    if kind == "strip":
        each = [placed(problem, strip.box) for strip in kernel.strips]
        made = [steps * columns * cells + ROW + ROW_FIELD * fields for cells, fields in each]
        chosen: np.ndarray[Any, Any] = np.array(made)[regions["variant"]]
        return chosen
    boxes = (Box(tuple(map(int, row["lo"][:2])), tuple(map(int, row["hi"][:2]))) for row in regions)
    each = [placed(problem, box) for box in boxes]
    rows: np.ndarray[Any, Any] = np.array([steps * columns * n + ROW + ROW_FIELD * fields for n, fields in each])
    return rows


@remembered(4096)
def _absorbs(problem: Problem, box: Box) -> bool:
    """True for a problem with absorbers: some stage has several updates in a box."""
    return any(sum(update.box.overlaps(box) for update in stage.updates) > 1 for stage in problem.stages)


def _tiled(
    site: Site,
    regions: np.ndarray[Any, Any],
    program: Program,
    steps: int,
    row: np.ndarray[Any, Any],
    lanes: int,
    registers: int,
    touched: float,
) -> KernelWork:
    """A launch of tiles that stream along rows; row: instructions of a lane for a row of each."""
    problem, plan = site.problem, levels(site.problem, steps)
    shape = (regions["hi"] - regions["lo"])[:, : problem.grid.ndim]
    chains = (shape[:, 0] + FILLED * overhead(problem, steps)) * row
    slots = _slots(site.gpu, program, registers)
    moved = float(shape.prod(axis=1).sum()) * plan.moved * problem.itemsize
    blocks = -(-len(regions) // program.tiles_per_block)
    results = float(chains.sum()) * lanes
    return KernelWork("", blocks, slots // program.tiles_per_block, moved, touched, results, _longest(chains, slots))


def _longest(rows: np.ndarray[Any, Any], slots: int) -> float:
    """The most work of one of `slots` slots, tile after tile."""
    if len(rows) <= slots:
        return float(rows.max())
    return max(float(rows.max()), float(rows.sum()) / slots)


def _tiles1d(kernel: PassKernel1D, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    slots = _slots(site.gpu, kernel.interior, shape1d.registers(kernel))
    for box in boxes:
        for launch in kernel.launches(box, slots, site.recorded):
            shape = launch.extents[:, 0]
            own, plan = float(shape.sum()), levels(site.problem, 1)
            moved = own * plan.moved * site.problem.itemsize
            interior = launch.program is kernel.interior
            width = kernel.shape.width if interior else float(shape.max())
            results = len(shape) * width * kernel.steps * per_cell(site.problem, 1)
            chain = kernel.steps * per_cell(site.problem, 1) * kernel.shape.cells * -(-len(shape) // slots)
            yield KernelWork("interior 1D" if interior else "boundary 1D", launch.blocks, slots, moved,
                             _touched(site.problem, [box]), results, chain, concurrent=interior)  # fmt: skip


def persistent(kernel: PersistentKernel, site: Site, box: Box) -> tuple[tuple[KernelWork, KernelWork], ...]:
    """One pass of a persistent kernel over what a device owns: for each block that may be the last, its boundary tiles
    and its interior ones, which follow these.
    """
    made, problem, steps = kernel.made, site.problem, kernel.made.steps
    blocks = max(1, persistent_resident(kernel) * site.gpu.multiprocessors)
    tiles = kernel.tiles(box, blocks)
    lost, row = FILLED * overhead(problem, steps), _row(problem, steps, made.shape.columns)
    inside = [(tile.hi[0] - tile.lo[0] + lost) * row for tile in tiles.interior]
    boundary = [block_tile(kernel, tile) for tile in tiles.boundary]
    rows = (max(inside[n : n + kernel.warps]) for n in range(0, len(inside), kernel.warps))
    units = [*((one, 0.0) for one in boundary), *((0.0, one) for one in rows)]
    each = [
        (sum(one[0] for one in units[n::blocks]), sum(one[1] for one in units[n::blocks]))
        for n in range(min(blocks, len(units)))
    ]
    late = {max(each, key=sum), max(each, key=lambda chains: 3 * chains[0] + chains[1])}
    moved, touched = box.size * _loaded(problem, steps) * problem.itemsize, _touched(problem, [box])
    whole = sum(inside) * WARP, sum(boundary) * kernel.warps * WARP
    here, there = (moved, 0) if inside else (0, moved)
    return tuple(
        (
            KernelWork("persistent", len(each), blocks, there, touched, whole[1], chains[0]),
            KernelWork("persistent with interior tiles", len(each), blocks, here, touched, whole[0], chains[1]),
        )
        for chains in late
    )


def block_tile(kernel: PersistentKernel, tile: Box) -> float:
    """Instructions of a lane for a tile in shared memory: in each step all of its cells and the rows around it that the
    remaining steps need, with a barrier after each stage.
    """
    made, problem, steps = kernel.made, kernel.made.problem, kernel.made.steps
    cells, fields = slowest(problem, tile)
    around, parts = overhead(problem, steps) / steps, made.boundary_width / WARP / kernel.warps
    rounds = [(min(tile.shape[0], kernel.rows) + left * around) * parts for left in range(steps + 1)]
    arithmetic = sum(max(1.0, each) for each in rounds[:-1]) * cells
    return arithmetic + rounds[-1] * fields * ROW_FIELD + steps * len(problem.stages) * BARRIER


# -- 3D ------------------------------------------------------------------------------------------------------------


def _tiles3d(kernel: PassKernel3D, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    problem, steps = site.problem, kernel.steps
    slots = _slots(site.gpu, kernel.interior, round(shape3d.registers(kernel)))
    for box in boxes:
        short = kernel.shorter(box, slots, slots)
        for launch in short.launches(box, slots, site.recorded):
            shape = launch.extents[:, :3]
            planes = shape[:, 0] + overhead(problem, steps)
            own = float(shape.prod(axis=1).sum())
            moved = own * _loaded(problem, steps) * problem.itemsize
            plane = kernel.shape.columns * kernel.shape.rows
            cells = 16 // problem.itemsize * kernel.shape.rows_each
            row = _row(problem, steps, cells)
            results = float(planes.sum()) * plane / cells * row
            touched, chain = _touched(problem, boxes), _longest(planes, slots) * row
            yield KernelWork("interior 3D", len(shape), slots, moved, touched, results, chain)


def _with_remainder(kernel: PassKernel3D, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    """The launches of tiles, and those of the remainder by one-step kernels."""
    streamed = list(_tiles3d(kernel, site, boxes))
    rest = [left for box in boxes for left in kernel.shorter(box, 1, 1).remainder(box, 1, site.recorded)]
    for part in remainders(kernel.problem, kernel.steps, rest, site.gpu):
        for number, step in enumerate(part.steps):
            for place, work in enumerate(single_steps(site, step, part.later(number))):
                later = bool(streamed and (number or place))
                yield replace(work, family=f"{work.family}, remainder", concurrent=bool(streamed), waits=later)
    yield from streamed


def _by_streams(made: Any, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    kernel, site = made.kernel, replace(site, made=made.setting.problem)
    if kernel.steps > 1:
        yield from _tiles3d(PassKernel3D(kernel.problem, kernel.steps, *kernel.shapes), site, boxes)
        return
    parts = made.parts(boxes, site.recorded)
    streamed = [work for box in parts.interior for work in _streamed(kernel, site, box)]
    for plan, cells in made.beside(parts):
        for place, work in enumerate(single_steps(replace(site, made=plan.setting.problem), cells)):
            yield replace(work, concurrent=bool(streamed), waits=bool(place and streamed)) if streamed else work
    yield from streamed
    for plan, cells in made.behind(parts):
        yield from single_steps(replace(site, made=plan.setting.problem), cells)


def _by_slabs(made: Any, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    for plan, cells in made.shares(boxes):
        yield from launches(plan, site, cells)


def _streamed(kernel: Any, site: Site, box: Box) -> Iterator[KernelWork]:
    problem = kernel.problem
    slots = [_slots(site.gpu, program, STREAM_REGISTERS) for program in kernel.programs]
    for number, launch in enumerate(kernel.launches(box, slots)):
        rings, stages = kernel.pipelines[number], kernel.stages[number]
        shape = launch.extents[:, :3]
        planes = shape[:, 0] + overhead(problem, 1)
        values = len(rings.loaded) + len(rings.levels.finals)
        moved = float(shape.prod(axis=1).sum()) * values * problem.itemsize
        operations = _stage_operations(problem, stages)
        results = float(planes.sum()) * rings.shape.columns * rings.shape.rows * operations
        chain = _longest(planes, slots[number]) * operations * rings.shape.rows_each
        touched = _touched(problem, [box])
        yield KernelWork("streaming 3D", len(shape), slots[number], moved, touched, results, chain)


@remembered()
def _stage_operations(problem: Problem, stages: tuple[int, ...]) -> float:
    nodes = (node for node in levels(problem, 1).nodes if node.stage in stages)
    return _operations(problem, nodes)


# -- norms ---------------------------------------------------------------------------------------------------------


def _summed(made: Any, site: Site, boxes: Boxes) -> Iterator[KernelWork]:
    owned = made.partition.owned(site.device)
    if (outside := subtract(boxes, owned)) and made.beyond is not None:
        for place, work in enumerate(launches(made.beyond, site, outside)):
            yield replace(work, concurrent=True, waits=place > 0)
    yield from tiles2d(made.owned.kernel, site, intersect(boxes, owned))
    yield KernelWork("utility", 1, 1, 0, 0, 0, 0)


LAUNCHES: dict[type, Callable[[Any, Site, Boxes], Iterable[KernelWork]]] = {
    OneStepPlan: _by_regions,
    TiledPlan: _by_tiles,
    StreamingPlan: _by_streams,
    SlabsPlan: _by_slabs,
    SummedPlan: _summed,
}


# -- shared --------------------------------------------------------------------------------------------------------


@remembered()
def per_cell(problem: Problem, steps: int) -> float:
    """Float32 results of arithmetic of a cell of the interior in a pass."""
    return _operations(problem, levels(problem, steps).nodes)


def _operations(problem: Problem, nodes: Iterable[Any]) -> float:
    """Instructions for a cell, including those that are no arithmetic."""
    return sum(instructions(write.assignment for write in node.writes) for node in nodes) * problem.itemsize / 4


def _row(problem: Problem, steps: int, columns: float) -> float:
    """Instructions of a lane for a row of so many columns."""
    return per_cell(problem, steps) * columns + ROW + ROW_FIELD * _loaded(problem, steps)


def _touched(problem: Problem, boxes: Iterable[Box]) -> float:
    """Bytes of all arrays of a run on some boxes: two slots of the state, and the coefficients."""
    whole = problem.grid.box.size
    state = sum(2 * problem.fields[name].box.size for name in problem.state)
    fixed = sum(problem.fields[name].box.size for name in problem.coefficients if problem.fields[name].full)
    return (state + fixed) / whole * sum(box.size for box in boxes) * problem.itemsize


def _loaded(problem: Problem, steps: int) -> int:
    """Values of a cell that a pass reads and writes."""
    return levels(problem, steps).moved


def _slots(gpu: GpuModel, program: Program, registers: int) -> int:
    """Tiles of a program that a GPU works on at once, with so many registers of a thread."""
    rounded = -(-registers // 8) * 8
    by_registers = gpu.registers // (rounded * program.threads)
    by_shared = gpu.shared // (program.shared_bytes + gpu.block_reserved)
    each = max(1, min(by_registers, by_shared, THREADS // program.threads, BLOCKS))
    return each * program.tiles_per_block * gpu.multiprocessors
