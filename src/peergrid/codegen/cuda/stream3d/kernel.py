"""A pass over a 3D box as a value: which problem, how many steps, in which shape; what is compiled and launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import repeat
from math import ceil, prod

from peergrid.codegen.cuda.blocked.interior import computing, grown, reached, unbounded
from peergrid.codegen.cuda.blocked.levels import usual_updates
from peergrid.codegen.cuda.common.program import Launch, Program, regions_of
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.codegen.cuda.stream3d.core import core, streamed
from peergrid.codegen.cuda.stream3d.correction_text import rounds
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.text import program
from peergrid.codegen.cuda.stream3d.tiles import LEAST_PLANES, across, first, least_planes, pieces, tiles, useful
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.grid import Box
from peergrid.grid.box import disjoint, intersect
from peergrid.stencil import Growth, Problem, advanced_box, footprint
from peergrid.stencil.cost import minimal_bytes

PACE = layout_of("planes3d.cuh", "Pace")
"""The argument of a kernel whose blocks advance together."""
WRAPS = layout_of("planes3d.cuh", "Wraps")
"""The cells of axes across whose periodic edges a kernel reads by itself."""
AWAITED = layout_of("planes3d.cuh", "Awaited")
"""The first tiles of a launch, which a queue awaits."""
LATEST = 2 / 3  # of a launch, by which the boundary region is there, so that its copies come to their end, too


@dataclass(frozen=True)
class Parts:
    """The kernels that make the cells of some boxes: `interior`, this one; `beside`, kernels of one step, at the same
    time; `after`, kernels of one step, once the others are done, on cells that `interior` has, too.
    """

    interior: tuple[Box, ...]
    beside: tuple[Box, ...]
    after: tuple[Box, ...]


@dataclass(frozen=True)
class StreamKernel:
    """`steps` steps of a 3D problem in one pass: each launch makes some of the stages, with its own shape of tiles."""

    problem: Problem
    steps: int
    shapes: tuple[StreamShape, ...]
    stages: tuple[tuple[int, ...], ...]

    @cached_property
    def pipelines(self) -> tuple[Rings, ...]:
        """The pipeline of each launch."""
        return tuple(map(Rings, repeat(self.problem), repeat(self.steps), self.shapes, self.stages))

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The kernel of each launch."""
        return tuple(program(rings, given=True) for rings in self.pipelines)

    def launches(self, box: Box, slots: Sequence[int], awaited: Sequence[Box] = ()) -> tuple[Launch, ...]:
        """The launches that advance a box of the interior; slots: how many blocks of each run at once on the device;
        awaited: the boxes whose tiles come first.
        """
        if box.empty:
            return ()
        works = zip(self.programs, self.pipelines, slots, strict=True)
        return tuple(Launch(program, regions_of(self._first(rings, box, n, awaited)[0])) for program, rings, n in works)

    def awaited(self, box: Box, slots: int, boxes: Sequence[Box]) -> int:
        """The tiles of the last launch over a box that hold cells of others."""
        return self._first(self.pipelines[-1], box, slots, boxes)[1]

    def soon(self, box: Box, boxes: Sequence[Box], gpu: GpuModel) -> bool:
        """True if the last launch over a box makes some boxes in it first, and enough behind them to hide copies."""
        slots = _slots(self.pipelines[-1], gpu)
        awaited, count = self.awaited(box, slots, boxes), len(self._tiles(self.pipelines[-1], box, slots))
        return 0 < ceil(awaited / slots) <= LATEST * ceil(count / slots)

    def _first(self, rings: Rings, box: Box, slots: int, boxes: Sequence[Box]) -> tuple[tuple[Box, ...], int]:
        """The tiles of a box, those first that make cells of others, and how many these are."""
        made = unbounded(self.problem, advanced_box(self.problem))
        return first(self._tiles(rings, box, slots), intersect(boxes, made))

    def _tiles(self, rings: Rings, box: Box, slots: int) -> tuple[Box, ...]:
        made = self._grown(rings, box)
        return tiles(rings, made, slots, least_planes(rings, made, slots)) if not made.empty else ()

    def _grown(self, rings: Rings, box: Box) -> Box:
        """The cells of the box that a launch has to make, for later ones: no more than its updates write."""
        written = unbounded(self.problem, advanced_box(rings.problem))
        lo, hi = written.lo[2] // rings.width * rings.width, -(-written.hi[2] // rings.width) * rings.width
        written = written.with_axis(2, lo, hi) & unbounded(self.problem, self.problem.grid.box)  # in whole accesses
        if len(self.stages) == 1:
            return box & written
        needs = footprint(self.problem, 1).targets[0]
        growth = (needs[stage][name] for stage in rings.stages for name in self.problem.stages[stage].targets)
        return self.problem.grid.clip(reduce(Growth.__or__, growth).apply(box)) & written

    def accessed(self, box: Box, owned: Box) -> Box:
        """A box with the cells beside it, among those that a device owns, that are in the same accesses of 16 bytes and
        that no update ever writes: stores of whole accesses give them the value that they keep.
        """
        advanced, width = advanced_box(self.problem), self.pipelines[0].width
        lo, hi = box.lo[2], box.hi[2]
        if lo == advanced.lo[2]:
            lo = max(lo // width * width, min(lo, owned.lo[2]))
        if hi == advanced.hi[2]:
            hi = min(-(-hi // width) * width, max(hi, owned.hi[2]))
        return box.with_axis(2, lo, hi)

    def clocks(self, number: int, launch: Launch, blocks: int) -> int:
        """The most clocks of a block of a launch of so many blocks."""
        rings = self.pipelines[number]
        planes = launch.extents[:, 0] + rings.early
        each = -(-planes // rings.shape.unroll) * rings.shape.unroll
        return max(int(each[block::blocks].sum()) for block in range(blocks))

    def wraps(self, box: Box) -> tuple[int, int, int]:
        """For each axis its cells if it is periodic and the box, which is all that a device owns, spans it: kernels
        then read across its edges by themselves, once, and rows in whole accesses of 16 bytes. 0 otherwise.
        """
        grid, growth = self.problem.grid, footprint(self.problem, self.steps).inputs
        aligned = (True, True, grid.shape[2] % self.pipelines[0].width == 0)
        found = [0, 0, 0]
        for axis, size in enumerate(grid.shape):
            once = all(max(one.below[axis], one.above[axis]) <= size for one in growth.values())
            if grid.periodic[axis] and aligned[axis] and once and box.shape[axis] == size:
                found[axis] = size
        return found[0], found[1], found[2]

    def pays(self, box: Box, gpu: GpuModel) -> bool:
        """True if a launch for each pipeline takes less time on a box of usual cells than kernels of one step.

        They save no traffic where a stage reads every value in one place alone, as that of a lattice Boltzmann method.
        """
        if box.empty or box.shape[0] < LEAST_PLANES or not any(rings.reuses for rings in self.pipelines):
            return False
        busy = sum(busy_cells(rings, box, gpu, gpu.alone) for rings in self.pipelines) / len(self.pipelines)
        filling = gpu.stream_start * self.problem.grid.box.size / minimal_bytes(self.problem)
        nodes = sum(len(rings.levels.nodes) for rings in self.pipelines)
        reads = len(self.pipelines[0].beside) if nodes == 1 else gpu.many_reads
        return busy + filling < box.size / gpu.one_step_rate(reads)

    def independent(self, boxes: Sequence[Box]) -> bool:
        """True if launches may advance the boxes at the same time.

        Cells near an update of few cells, such as a source, are made anew behind the stream. If the streams of two
        boxes pass them, one may write what the other has made anew and reads: what launches before the last one hand
        on, and what later stages read beside a cell.
        """
        points, last = core(self.problem, self.steps)[1], self.stages[-1][0]
        for (stage, target), update, growth in grown(self.problem, self.steps):
            if (stage < last and self._passed(stage, target)) or self._read_beside(stage, target):
                anew = reached(self.problem, self.steps, stage, target, update.box, growth)
                for here, near in zip(anew, computing(self.problem, update.box, growth), strict=True):
                    if here in points and sum(map(near.overlaps, boxes)) > 1:
                        return False
        return True

    def _passed(self, stage: int, target: str) -> bool:
        """True if a launch before the last writes what an update of a stage changes, or reads it behind that."""
        behind = usual_updates(self.problem)[stage + 1 : self.stages[-1][0]]
        reads = {read.field for assigned in behind for _, assignment in assigned.values() for read in assignment.reads}
        return target in reads or any(target in one.targets for one in self.problem.stages[:stage])

    def _read_beside(self, stage: int, target: str) -> bool:
        """True if later stages read beside a cell what a launch stores and an update of a stage changes, at once or by
        what is made of it.
        """
        needs, none = footprint(self.problem, 1).targets[0], Growth.none(3)
        usual, changed = usual_updates(self.problem), {target}
        if needs[stage][target] != none and any(target in assigned for assigned in usual):
            return True
        for number in range(stage + 1, len(usual)):
            made = {
                name
                for name, (_, assignment) in usual[number].items()
                if any(read.field in changed for read in assignment.reads)
            }
            if any(needs[number][name] != none for name in made):
                return True
            changed |= made
        return False

    def parts_of(
        self, boxes: Sequence[Box], gpu: GpuModel = H200, recorded: Sequence[int] = (), whole: bool = False
    ) -> Parts:
        """As `parts`, of several boxes."""
        found = [self.parts(box, gpu, recorded, whole) for box in boxes]
        return Parts(
            tuple(box for one in found for box in one.interior),
            tuple(box for one in found for box in one.beside),
            tuple(box for one in found for box in one.after),
        )

    def parts(self, box: Box, gpu: GpuModel = H200, recorded: Sequence[int] = (), whole: bool = False) -> Parts:
        """The parts of a box by the kernels that make them; recorded: the receivers to serve (see `onestep`); whole: as
        of `core`.
        """
        interior, points = streamed(self.problem, self.steps, box, whole=whole)
        written = advanced_box(self.problem)
        made = interior & written
        few = made.size < gpu.streamed_share_3d * (box & written).size
        if self.steps == 1 and (few or not self.pays(made, gpu)):
            return Parts((), (box,), ())
        heard = [cell for cell in self.problem.receiver_boxes(recorded) if cell.overlaps(interior)]
        # Kernels beside the stream make some of its cells for themselves: near points it may have stored others there.
        anew = (*(point & box for point in points if point.overlaps(interior)), *heard)
        return Parts((interior,), box - interior, disjoint(anew))


def busy_cells(rings: Rings, box: Box, gpu: GpuModel, alone: float = 1.0) -> float:
    """The cells that the GPU could make at its full rate in the time that the tiles of a box take.

    alone: of the time of a plane of a full tile among others, the least that a block takes for any tile. So blocks that
    are too few, or the last ones of many, leave the rest of the GPU idle. If threads correct several cells of layers,
    one after the other, a plane takes so many times longer.
    """
    rows, columns = across(rings, box)
    slots, count = _slots(rings, gpu), len(rows) * len(columns)
    cut = pieces(rings, box, count, slots)
    planes = ceil(box.shape[0] / cut) + rings.early
    each, least = planes * box.shape[1] * box.shape[2] / count, alone * planes * prod(useful(rings))
    full, last = divmod(count * cut, slots)
    busy = full * slots * max(each, least) + (max(last * each, slots * least) if last else 0.0)
    return busy * max(1, rounds(rings, columns))


def _slots(rings: Rings, gpu: GpuModel) -> int:
    """Blocks that run at once."""
    return gpu.multiprocessors * max(1, gpu.blocks_by_shared(rings.shared_bytes))


def in_one(problem: Problem, steps: int, shape: StreamShape) -> StreamKernel:
    """All stages of all steps in one launch."""
    return StreamKernel(problem, steps, (shape,), (tuple(range(len(problem.stages))),))
