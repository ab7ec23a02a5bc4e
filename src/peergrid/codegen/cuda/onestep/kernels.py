"""One step per pass, for any problem: the kernels that advance boxes from slot to slot, and how to launch them.

Method: the groups of a step one after another (see `groups`); each group's cells are cut into regions of one variant
(see `regions`). A large region has a kernel and a launch of its own (`wide`), so that the interior carries neither
the registers nor the conditions of absorbing layers and sources; all small ones share one launch (`cell`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, repeat
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import Arguments, prelude
from peergrid.codegen.cuda.common.pitches import Pitched, pitched_as
from peergrid.codegen.cuda.common.program import numbered
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep import cell, rows3d
from peergrid.codegen.cuda.onestep.groups import Group, groups, scratch_fields
from peergrid.codegen.cuda.onestep.regions import Later, Region, Variant, regions
from peergrid.codegen.cuda.onestep.wide import THREADS, WideKernel
from peergrid.grid import Box
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

RECORD = """\
extern "C" __global__ void record(const __grid_constant__ Arguments a) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= a.count) return;
  const Receiver receiver = a.receivers[n];
  const Field& f = a.fields[receiver.field];
  const long long at = __AT__;
  a.traces[receiver.number * a.total_steps + now(a)] = f.slot[a.target][at];
}
"""
RECORD_AT = {
    1: "receiver.cell[0]",
    2: "receiver.cell[0] * f.into[0] + receiver.cell[1]",
    3: "receiver.cell[0] * f.into[0] + receiver.cell[1] * f.into[1] + receiver.cell[2]",
}


@dataclass(frozen=True)
class OneStepLaunch:
    """One kernel of a unit: its thread blocks, and the box or the table of regions it works on.

    receivers: whether the kernel records receivers; then the box names the cells whose receivers it records;
    concurrent: whether it may run at the same time as the next one; regions: boxes with the numbers of their variants;
    firsts: the first thread block of each.
    """

    unit: int
    kernel: str
    blocks: int
    threads: int
    box: Box
    regions: tuple[tuple[int, Box], ...] = ()
    receivers: tuple[int, ...] = ()
    concurrent: bool = False
    firsts: tuple[int, ...] = ()

    def table(self) -> NDArray[Any]:
        """The table of regions as the kernel reads it."""
        rows = numbered(self.regions)
        rows["first"] = self.firsts
        return rows


@dataclass(frozen=True)
class OneStepKernels:
    """The C++ text of some kernels; `wide`, `cells` and `rows` are the variants it has kernels for.

    rare: of `rows`, as in `rows3d.kernel`; carries: as in `regions`.
    """

    arguments: Arguments
    wide: tuple[Variant, ...]
    cells: tuple[Variant, ...]
    rows: tuple[Variant, ...]
    gpu: GpuModel
    carries: bool = True
    rare: frozenset[Variant] = frozenset()

    @classmethod
    def of(
        cls,
        problem: Problem,
        works: Iterable[Iterable[Box]],
        gpu: GpuModel = H200,
        *,
        carries: bool = True,
        later: Sequence[Later | None] = (),
        pitched: Pitched | None = None,
    ) -> OneStepKernels:
        """The kernels that advance each of several sets of boxes by one step; gpu: the model of the GPU; carries: as in
        `regions`; later: of each set, if it is not the last step; pitched: as in `Arguments`, where the problem is a
        part of that whose fields memory is laid out for.
        """
        variants: tuple[dict[Variant, None], ...] = ({}, {}, {})
        by_rows: list[Region] = []
        for boxes, following in zip(works, later or repeat(None), strict=False):
            for number in range(len(groups(problem))):
                kinds = _kinds(_regions(problem, number, tuple(boxes), carries, following), gpu)
                _, of_rows, _ = kinds
                by_rows += of_rows
                for found, kind in zip(variants, kinds, strict=True):
                    found.update(dict.fromkeys(region.variant for region in kind))
        wide, rows, cells = (tuple(sorted(found)) for found in variants)  # in whatever order regions come
        arguments = arguments_of(problem, pitched)
        arranged = (
            rows3d.arranged(arguments, group, [variant for variant in rows if variant.group == number])
            for number, group in enumerate(groups(problem))
        )
        rare = (
            rows3d.rare_variants(problem, [region for region in by_rows if region.variant.group == number], gpu)
            for number in range(len(groups(problem)))
        )
        by_groups = tuple(chain.from_iterable(arranged))
        return cls(arguments, wide, cells, by_groups, gpu, carries, frozenset(chain.from_iterable(rare)))

    @property
    def source(self) -> str:
        """All kernels in one translation unit without includes; kernels have C names."""
        return "\n".join(
            (prelude(self.arguments, "one_step.cuh"), *(text for kernels in self._texts for text in kernels))
        )

    @property
    def units(self) -> tuple[str, ...]:
        """A translation unit for the kernels of each group, to be compiled side by side."""
        return tuple("\n".join((prelude(self.arguments, "one_step.cuh"), *kernels)) for kernels in self._texts)

    @property
    def needed(self) -> tuple[str, ...]:
        """The units that have kernels."""
        return tuple(unit for unit, kernels in zip(self.units, self._texts, strict=True) if kernels)

    @property
    def _texts(self) -> tuple[tuple[str, ...], ...]:
        """The kernels of each group."""
        given = self.arguments
        return _texts(given.problem, given.pitched, self.wide, self.cells, self.rows, self.rare, self.gpu)

    def kernels(self, number: int) -> Iterator[str]:
        """The kernels of a group, with the first that of receivers."""
        group = groups(self.arguments.problem)[number]
        wide, cells, rows = (
            {place: variant for place, variant in enumerate(found) if variant.group == number}
            for found in (self.wide, self.cells, self.rows)
        )
        for place, variant in wide.items():
            yield WideKernel(self.arguments, group, variant, self.gpu).source(f"wide_{place}")
        for place, variant in cells.items():
            yield cell.function(self.arguments, group, variant, place)
        if cells:
            yield cell.kernel(self.arguments, f"cells_{number}", cells)
        if rows:
            yield rows3d.kernel(self.arguments, group, f"rows_{number}", rows, self.rare, self.gpu)
        if number == 0 and self.arguments.problem.receivers:
            yield RECORD.replace("__AT__", _record_at(self.arguments))

    def launches(
        self, boxes: Iterable[Box], recorded: tuple[int, ...] = (), later: Later | None = None
    ) -> tuple[OneStepLaunch, ...]:
        """The launches that advance all the boxes by one step, in order.

        recorded: the receivers of the device that computes (indices into the problem's receivers); later: as in
        `regions`.
        """
        boxes, problem = tuple(boxes), self.arguments.problem
        found: list[OneStepLaunch] = []
        for number, group in enumerate(groups(problem)):
            parts = _regions(problem, number, boxes, self.carries, later)
            wide, rows, cells = _kinds(parts, self.gpu)
            wide.sort(key=lambda region: region.box.size)
            made = [*self._cells(number, cells), *self._rows(number, rows)]
            made += [self._wide(region, group) for region in wide]
            concurrent = bool(wide) and wide[-1].box.size >= self.gpu.concurrent_cells
            found += [replace(launch, concurrent=concurrent and launch is not made[-1]) for launch in made]
        inside = tuple(n for n in recorded if any(problem.receivers[n].cell in box for box in boxes))
        if inside:
            found.append(OneStepLaunch(0, "record", -(-len(inside) // 128), 128, boxes[0], receivers=inside))
        return tuple(found)

    def _wide(self, region: Region, group: Group) -> OneStepLaunch:
        kernel = WideKernel(self.arguments, group, region.variant, self.gpu)
        name = f"wide_{self.wide.index(region.variant)}"
        return OneStepLaunch(region.variant.group, name, kernel.blocks(region.box), THREADS, region.box)

    def _rows(self, group: int, parts: list[Region]) -> list[OneStepLaunch]:
        """The launch of row regions; the parts of one share their first block."""
        if not parts:
            return []
        found, table = rows3d.row_regions(parts, self.arguments.width), list[tuple[int, Box]]()
        firsts, blocks = list[int](), 0
        for region in found:
            table += [(self.rows.index(part.variant), part.box) for part in region.regions]
            firsts += [blocks] * len(region.parts)
            blocks += region.blocks(self.arguments.width)
        return [
            OneStepLaunch(group, f"rows_{group}", blocks, THREADS, parts[0].box, tuple(table), firsts=tuple(firsts))
        ]

    def _cells(self, group: int, parts: list[Region]) -> list[OneStepLaunch]:
        if not parts:
            return []
        table = tuple((self.cells.index(region.variant), region.box) for region in parts)
        *firsts, blocks = accumulate((-(-box.size // cell.THREADS) for _, box in table), initial=0)
        return [OneStepLaunch(group, f"cells_{group}", blocks, cell.THREADS, parts[0].box, table, firsts=tuple(firsts))]


def arguments_of(problem: Problem, pitched: Pitched | None = None) -> Arguments:
    """The argument struct of a problem's one-pass kernels; pitched: as in `OneStepKernels.of`."""
    return Arguments(problem, len(scratch_fields(problem)), pitched=pitched_as(problem) if pitched is None else pitched)


@remembered()
def _texts(
    problem: Problem,
    pitched: Pitched,
    wide: tuple[Variant, ...],
    cells: tuple[Variant, ...],
    rows: tuple[Variant, ...],
    rare: frozenset[Variant],
    gpu: GpuModel,
) -> tuple[tuple[str, ...], ...]:
    """The kernels of each group for these variants: whatever asks, and asks again, a text takes long to write."""
    made = OneStepKernels(arguments_of(problem, pitched), wide, cells, rows, gpu, rare=rare)
    return tuple(tuple(made.kernels(number)) for number in range(len(groups(problem))))


def is_wide(region: Region, together: int, gpu: GpuModel) -> bool:
    """True for a region that is worth a kernel and a launch of its own among regions of so many cells together."""
    box = region.box
    least = gpu.wide_cube if box.ndim == 3 and 2 * box.size < together else gpu.wide_cells
    return not region.variant.mirrored and box.size >= least and box.shape[-1] >= gpu.wide_columns


def _kinds(parts: list[Region], gpu: GpuModel) -> tuple[list[Region], list[Region], list[Region]]:
    """The regions that are wide, those of 3D boxes that share a launch row by row, and those that share one by cells:
    2D ones, and those whose reads cross a reflecting edge.
    """
    together = sum(region.box.size for region in parts)
    wide, rows, cells = list[Region](), list[Region](), list[Region]()
    for region in parts:
        by_rows = region.box.ndim == 3 and not region.variant.mirrored
        (wide if is_wide(region, together, gpu) else rows if by_rows else cells).append(region)
    return wide, rows, cells


def _record_at(arguments: Arguments) -> str:
    """The text of where the value of a receiver is, from that of cell 0 of its field."""
    problem = arguments.problem
    text = RECORD_AT[problem.grid.ndim]
    for name in sorted({receiver.field for receiver in problem.receivers}):
        if not problem.fields[name].full:
            place = f"receiver.cell[{problem.fields[name].axes[0]}]"
            text = f"receiver.field == {arguments.fields.index(name)} ? {place} : {text}"
    return text


def _regions(problem: Problem, number: int, boxes: tuple[Box, ...], carries: bool, later: Later | None) -> list[Region]:
    changing = boxes if carries else (box for box in boxes if _changes(problem, box))
    return [region for box in changing for region in _of_box(problem, number, box, carries, later)]


def _changes(problem: Problem, box: Box) -> bool:
    """True where any update writes a cell of the box: to advance others, earlier stages need not be made around it."""
    updates = (update for stage in problem.stages for update in stage.updates)
    return any(True for update in updates for _ in problem.grid.images(update.box, box))


@remembered(1024)
def _of_box(problem: Problem, number: int, box: Box, carries: bool, later: Later | None) -> tuple[Region, ...]:
    return regions(problem, number, groups(problem)[number], box, carries=carries, later=later)
