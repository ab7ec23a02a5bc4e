"""Several time steps of a 2D problem in one pass over memory: the tiles of a strip along one of the grid's sides.

As in `blocked2d.stream` one warp streams down the rows of a strip and holds the rows of every step in registers; where
the interior has one update for a cell, a strip has a few, told apart by the distance from the side (see `region`): rows
of a strip along axis 0 branch together, columns of a strip along axis 1 select. All strips are in one kernel (see
`kernel`); `variant` of a tile says whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.strips.levels import strip_levels
from peergrid.codegen.cuda.blocked2d.strips.region import BoundaryStrip


@dataclass(frozen=True)
class StripPlan2D(StreamPlan2D):
    """The plan of one strip's tiles."""

    strip: BoundaryStrip = field(kw_only=True)

    @cached_property
    def levels(self) -> Levels:
        return strip_levels(self.problem, self.shape.steps, self.strip, self.norm)

    @cached_property
    def useful(self) -> int:
        """Columns of a tile: what a strip leaves when it loses its margins; one that reaches the side loses one, unless
        columns wrap.
        """
        lost, strip = margin(self.problem, self.shape), self.strip
        side = strip.axis == 1 and not self.problem.grid.periodic[1]
        alone = side and strip.box.shape[1] <= self.shape.width - lost
        return self.shape.width - (lost if alone else 2 * lost)
