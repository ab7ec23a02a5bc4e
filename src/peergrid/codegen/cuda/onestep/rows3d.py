"""Small and thin regions of 3D boxes in one launch: a thread has W neighbouring cells of a row, whatever variants.

A region that is thinner along rows than an access of W cells makes a *row region* with one beside it: threads do both,
so that it costs few accesses of its own. A block finds its row region in a table, sorted by first blocks, whose entries
are the parts; those of one row region share their first block. Its threads are the accesses of the row region in C
order: rows of few columns, as of absorbers at their ends, leave no thread idle. Variants of few cells that need many
registers get the cells of an access one after another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.onestep import cell
from peergrid.codegen.cuda.onestep.alike import Alike, alike
from peergrid.codegen.cuda.onestep.groups import Group, groups
from peergrid.codegen.cuda.onestep.regions import Region, Variant
from peergrid.codegen.cuda.onestep.wide import THREADS, WideKernel
from peergrid.grid import Box
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, {blocks}) {name}(const __grid_constant__ Arguments a) {{
  int n = 0;
  for (int end = a.count; end - n > 1;) {{
    const int middle = (n + end) / 2;
    if (a.regions[middle].first <= (int)blockIdx.x) n = middle; else end = middle;
  }}
  const Region region = a.regions[n];
  int m = n;
  while (m > 0 && a.regions[m - 1].first == region.first) --m;
  const int begin = a.regions[m].lo[2] & ~(W - 1);
  const unsigned accesses = (region.hi[2] - begin + W - 1) / W, rows = region.hi[1] - region.lo[1];
  unsigned at = (blockIdx.x - region.first) * {threads} + threadIdx.x;
  const int k = begin + (int)(at % accesses) * W;
  at /= accesses;
  const int i = region.lo[0] + (int)(at / rows), j = region.lo[1] + (int)(at % rows);
  if (i >= region.hi[0]) return;
  const long long step = now(a);
  for (; m <= n; ++m) {{
    const Region& part = a.regions[m];
    if (k + W <= part.lo[2] || k >= part.hi[2]) continue;
    switch (part.variant) {{
{cases}
    }}
  }}
}}
"""
CASE = "      {labels} row_{number}(a, i, j, k, part.lo[2], part.hi[2], step{more}); break;"
CASE_BY_CELLS = """\
      {labels}
#pragma unroll 1
        for (int x = max(k, part.lo[2]); x < min(k + W, part.hi[2]); ++x) cell_{number}(a, i, j, x, step{more});
        break;"""
PLACES = "__constant__ const short places_{number}[{count}][{each}] = {rows};"


@dataclass(frozen=True)
class RowRegion:
    """A box, and the regions it consists of in the order of their columns."""

    box: Box
    parts: tuple[tuple[int, int, Variant], ...]

    @property
    def regions(self) -> Iterator[Region]:
        for lo, hi, variant in self.parts:
            yield Region(self.box.with_axis(2, lo, hi), variant)

    def blocks(self, width: int) -> int:
        """The thread blocks that cover it, for threads of so many cells."""
        accesses = -(-self.box.hi[2] // width) - self.box.lo[2] // width
        return -(-accesses * self.box.shape[0] * self.box.shape[1] // THREADS)


def row_regions(found: Sequence[Region], width: int) -> list[RowRegion]:
    """Regions, of which those around neighbouring boxes overlap, put together to rows, those with the narrowest rows
    first: they take longest. width: the cells of an access.
    """
    planes, lines = (_cuts(found, axis) for axis in (0, 1))
    made: list[RowRegion] = []
    for (zlo, zhi), (ylo, yhi) in product(pairwise(planes), pairwise(lines)):
        here = sorted((r for r in found if _holds(r.box, zlo, ylo)), key=lambda region: region.box.lo[2])
        for parts in _runs(here, width):
            box = Box((zlo, ylo, parts[0][0]), (zhi, yhi, parts[-1][1]))
            made = _joined(made, RowRegion(box, parts))
    return sorted(made, key=lambda region: region.box.shape[2])


def kernel(
    arguments: Arguments,
    group: Group,
    name: str,
    variants: Mapping[int, Variant],
    rare: Collection[Variant],
    gpu: GpuModel,
) -> str:
    """The kernel of a group that works through a table of row regions, and its functions; variants: as `arranged`;
    rare: those of which a thread makes cells one after another.
    """
    number_of = {variant: number for number, variant in variants.items()}
    found = {number_of[some.variants[0]]: some for some in alike(arguments, group, variants.values())}
    functions = (_function(arguments, group, number, some, rare, gpu) for number, some in found.items())
    places = (_places(arguments, number, some) for number, some in found.items() if any(some.varying))
    cases = "\n".join(_case(number, some, rare) for number, some in found.items())
    most = max((values(arguments.problem, one, gpu) for one in variants.values() if one not in rare), default=0)
    blocks = next((blocks for blocks, room, _ in gpu.row_blocks if most <= room), gpu.row_blocks[-1][0])
    return "\n".join((*functions, *places, KERNEL.format(name=name, threads=THREADS, blocks=blocks, cases=cases)))


@remembered(1024)
def values(problem: Problem, variant: Variant, gpu: GpuModel) -> int:
    """The registers for what a thread reads and makes in W cells of a row."""
    kernel = WideKernel(Arguments(problem), groups(problem)[variant.group], variant, gpu, most_rows=1)
    return kernel.values * problem.itemsize // 4


def rare_variants(problem: Problem, regions: Iterable[Region], gpu: GpuModel) -> frozenset[Variant]:
    """The variants that need more registers than threads should have and make few of the cells, as of edges and corners
    where layers meet: the others would have fewer threads, or values in memory, for their sake. regions: of a group.
    """
    cells = Counter[Variant]()
    for region in regions:
        cells[region.variant] += region.box.size
    for _, most, share in gpu.row_blocks:
        found = frozenset(variant for variant in cells if values(problem, variant, gpu) > most)
        if sum(cells[variant] for variant in found) <= share * cells.total():
            return found
    return frozenset()


def arranged(arguments: Arguments, group: Group, variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """The variants of a group in an order in which those that are alike follow each other."""
    return tuple(variant for some in alike(arguments, group, variants) for variant in some.variants)


def _function(
    arguments: Arguments, group: Group, number: int, some: Alike, rare: Collection[Variant], gpu: GpuModel
) -> str:
    given = replace(arguments, varying=some.varying[0])
    if some.variants[0] in rare:
        return cell.function(given, group, some.variants[0], number)
    return WideKernel(given, group, some.variants[0], gpu, most_rows=1).function(f"row_{number}")


def _places(arguments: Arguments, first: int, some: Alike) -> str:
    """The table of what differs between variants that are alike, which are numbered from the first on."""
    rows = [listed(map(arguments.number, entries), "{}") for entries in some.varying]
    return PLACES.format(number=first, count=len(rows), each=len(some.varying[0]), rows=listed(rows, "{}"))


def _case(first: int, some: Alike, rare: Collection[Variant]) -> str:
    labels = " ".join(f"case {first + place}:" for place in range(len(some.variants)))
    more = f", places_{first}[part.variant - {first}]" if any(some.varying) else ""
    form = CASE_BY_CELLS if some.variants[0] in rare else CASE
    return form.format(labels=labels, number=first, more=more)


def _cuts(found: Iterable[Region], axis: int) -> list[int]:
    return sorted({place for region in found for place in (region.box.lo[axis], region.box.hi[axis])})


def _holds(box: Box, plane: int, line: int) -> bool:
    return box.lo[0] <= plane < box.hi[0] and box.lo[1] <= line < box.hi[1]


def _runs(here: Sequence[Region], width: int) -> Iterator[tuple[tuple[int, int, Variant], ...]]:
    """Regions of the same rows, in order, as runs without gaps: what is narrower than an access with one beside it."""
    run: list[tuple[int, int, Variant]] = []
    for region in here:
        lo, hi = region.box.lo[2], region.box.hi[2]
        if run and (run[-1][1] != lo or (hi - lo >= width and run[-1][1] - run[0][0] >= width)):
            yield tuple(run)
            run = []
        run.append((lo, hi, region.variant))
    if run:
        yield tuple(run)


def _joined(made: list[RowRegion], fresh: RowRegion) -> list[RowRegion]:
    """Row regions with the same parts that together are a box, as one. What overlaps may leave a gap as large."""
    for other in made:
        whole, alone = other.box.hull(fresh.box), not other.box.overlaps(fresh.box)
        if alone and other.parts == fresh.parts and whole.size == other.box.size + fresh.box.size:
            return _joined([kept for kept in made if kept is not other], RowRegion(whole, fresh.parts))
    return [*made, fresh]
