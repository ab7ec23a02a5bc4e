"""Slabs whose kernels exchange by themselves: the tables of `skeletons/exchange2d.cuh`, and which tiles they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import FIELD
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem, boundary_depth, footprint

TABLES = """\
constexpr int BOUNDARY_ROWS = {rows};  // of a slab, from its end, that a neighbour needs or that read its rows
// Which rows and columns of a field a neighbour needs: `up` at the low end of the slab, `down` at its high end.
struct Halo {{ int field, up, down, first, last, left, right; }};
__constant__ const Halo HALOS[] = {{{halos}}};
"""


@dataclass(frozen=True)
class ExchangeTables:
    """Structs and functions for passes of so many steps; recorded: of kernels that note what their tiles do."""

    problem: Problem
    steps: int
    recorded: bool

    @property
    def source(self) -> str:
        """The tables, before what includes `exchange2d.cuh`."""
        head = f"#define WITH_NOTES\n{include('record.cuh')}" if self.recorded else ""
        return head + TABLES.format(rows=boundary_depth(self.problem, self.steps), halos=listed(self._halos()))

    def _halos(self) -> Iterator[str]:
        """The fields that travel, as `Halo`."""
        inputs = footprint(self.problem, self.steps).inputs
        for number, name in enumerate(self.problem.fields):
            if name in self.problem.state:
                growth, box = inputs[name], self.problem.fields[name].box
                wraps = self.problem.grid.periodic[0]
                first, last = (-FAR, FAR) if wraps else (box.lo[0], box.hi[0])
                halo = number, growth.above[0], growth.below[0], first, last, box.lo[1], box.hi[1]
                yield listed(halo, "{}")

    def dtype(self) -> np.dtype[Any]:
        """`Exchange` for NumPy.

        fields: as in `Arguments`, of the neighbour, shifted by whole periods where the grid wraps; local, remote:
        addresses of counters (0: no neighbour); expected: the neighbour's boundary tiles that face this device; op: the
        operation that is said to be missing; passed: passes since the counters stood at zero; timeout: nanoseconds;
        fault_log, record, op: as in `service`; begun, last: the word in which block `last` says that the pass has
        begun, one more than `passed` (0: nobody asks); notes: the list of a recorded run.
        """
        side = layout_of("exchange2d.cuh", "Side", Field=FIELD, FIELD_COUNT=len(self.problem.fields))
        return layout_of("exchange2d.cuh", "Exchange", Side=side, WITH_NOTES=self.recorded)

    def counts(self, box: Box, regions: Iterable[NDArray[Any]]) -> tuple[int, int]:
        """The tiles in the boundary region of a slab, at its low and its high end: what the neighbours there count."""
        ends = [(low.sum(), high.sum()) for low, high in (self._in_boundary(box, table) for table in regions)]
        return sum(int(low) for low, _ in ends), sum(int(high) for _, high in ends)

    def boundary_first(self, box: Box, regions: NDArray[Any]) -> NDArray[Any]:
        """The tiles with those of the boundary region in front, else in order."""
        low, high = self._in_boundary(box, regions)
        return np.concatenate([regions[low | high], regions[~(low | high)]])

    def _in_boundary(self, box: Box, regions: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The tiles in the boundary region of a slab, at its low and at its high end."""
        reach = boundary_depth(self.problem, self.steps)
        return regions["lo"][:, 0] < box.lo[0] + reach, regions["hi"][:, 0] > box.hi[0] - reach


def supports(problem: Problem, partition: Partition, steps: int) -> bool:
    """True where kernels can fuse the exchange: 2D slabs along axis 0 that are thick enough, rows that do not wrap."""
    if problem.grid.ndim != 2 or partition.parts[1] != 1 or problem.grid.periodic[1]:
        return False
    thinnest = min(partition.owned(device).shape[0] for device in range(partition.devices))
    return thinnest >= 2 * boundary_depth(problem, steps)
