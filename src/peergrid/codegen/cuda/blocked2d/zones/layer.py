"""Several time steps of a 2D problem in one pass over memory: the tiles of a zone along one of the grid's sides.

As in `blocked2d.stream` one warp streams down the rows of a strip and holds the rows of every step in registers; where
the interior has one update for a cell, a zone has a few, told apart by the distance from the side (see `zone`): rows of
a zone along axis 0 branch together, columns of a zone along axis 1 select. All zones are in one kernel (see `kernel`);
`variant` of a tile says whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.zones.levels import layer_levels
from peergrid.codegen.cuda.blocked2d.zones.text import StripText2D
from peergrid.codegen.cuda.blocked2d.zones.zone import Zone


@dataclass(frozen=True)
class Layer2D(StreamPlan2D):
    """The plan of one zone's tiles; `entry` is the name of its struct."""

    zone: Zone | None = None

    @property
    def place(self) -> Zone:
        """The zone, which is always there."""
        assert self.zone is not None
        return self.zone

    @cached_property
    def levels(self) -> Levels:
        return layer_levels(self.problem, self.shape.steps, self.place, self.norm)

    @property
    def text(self) -> StripText2D:
        """The text of the plan."""
        return StripText2D(self, self.entry, self.place)

    @cached_property
    def useful(self) -> int:
        """Columns of a tile: what a strip leaves when it loses its margins; one that reaches the side loses one, unless
        columns wrap.
        """
        lost, zone = margin(self.problem, self.shape), self.place
        side = zone.axis == 1 and not self.problem.grid.periodic[1]
        alone = side and zone.box.shape[1] <= self.shape.width - lost
        return self.shape.width - (lost if alone else 2 * lost)
