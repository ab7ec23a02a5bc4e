"""The kernels of the tiles of a pass: plans, as text, for `skeletons/tile1d.cuh`."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.kernel import TileKernel
from peergrid.codegen.cuda.blocked.levels import usual_fields, usual_updates
from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_in, applied_inside
from peergrid.codegen.cuda.blocked1d.shape import Tile1D
from peergrid.codegen.cuda.common.structs import constants, numbers, plan
from peergrid.stencil import Stage

THREADS = 128  # of a boundary tile's block


@dataclass(frozen=True)
class Interior1D:
    """The plan of interior tiles."""

    tile: Tile1D

    @property
    def kernel(self) -> TileKernel:
        """The kernel itself: a warp makes a range of tiles."""
        shape, threads = self.tile.shape, 32 * self.tile.shape.warps
        return TileKernel(
            shape.steps,
            None,
            "tile1d",
            ("tile1d.cuh",),
            (self,),
            "InteriorTiles<Interior1D>",
            "warp",
            f"__launch_bounds__({threads})",
            threads,
            0,
            shape.warps,
            whole=False,
        )

    @property
    def applied(self) -> tuple[Applied, ...]:
        return tuple(applied for stage in self._stages for applied in applied_inside(self.tile.problem, stage))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        tile = self.tile
        given = constants(
            STEPS=tile.shape.steps,
            STAGES=len(self._stages),
            REACH=tile.reach,
            CELLS=tile.shape.cells,
            LEFT=tile.margins[0],
            USEFUL=tile.useful,
        )
        lists = numbers(Kept=map(updates.number, usual_fields(tile.problem)))
        return plan("Interior1D", (self._stage(updates, stage) for stage in self._stages), given, lists)

    @property
    def _stages(self) -> tuple[int, ...]:
        """The stages that do something."""
        return tuple(number for number, assigned in enumerate(usual_updates(self.tile.problem)) if assigned)

    def _stage(self, updates: Updates, stage: int) -> tuple[str, str]:
        reads, targets = self.tile.reads[stage], tuple(usual_updates(self.tile.problem)[stage])
        given = constants(
            WRITTEN=len(targets),
            READS=len(reads),
            WRITES=map(updates.number, targets),
            READ=[(updates.number(name), *ends) for name, ends in reads.items()] or [(0, 0, 0)],
        )
        return given, updates.at_once(applied_inside(self.tile.problem, stage), targets)


@dataclass(frozen=True)
class Boundary1D:
    """The plan of boundary tiles."""

    tile: Tile1D

    @property
    def kernel(self) -> TileKernel:
        """The kernel itself: a tile for each block."""
        return TileKernel(
            self.tile.shape.steps,
            None,
            "tile1d_boundary",
            ("tile1d.cuh",),
            (self,),
            "BoundaryTiles<Boundary1D>",
            "block",
            f"__launch_bounds__({THREADS}, 4)",
            THREADS,
            self.tile.shared_bytes,
            whole=False,
        )

    @property
    def applied(self) -> tuple[Applied, ...]:
        return tuple(applied for stage in self.tile.problem.stages for applied in applied_in(stage))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        tile, stages = self.tile, self.tile.problem.stages
        below, above = tile.ghosts
        given = constants(
            STEPS=tile.shape.steps,
            STAGES=len(stages),
            BELOW=below,
            ABOVE=above,
            SEGMENT=tile.segment,
            THREADS=THREADS,
        )
        lists = numbers(Fields=map(updates.number, tile.fields))
        return plan("Boundary1D", (_boundary_stage(updates, stage) for stage in stages), given, lists)


def _boundary_stage(updates: Updates, stage: Stage) -> tuple[str, str]:
    applied = applied_in(stage)
    given = constants(WRITTEN=len(stage.targets), UPDATES=len(applied), WRITES=map(updates.number, stage.targets))
    return given, updates.chosen(applied, stage.targets)
