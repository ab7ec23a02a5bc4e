"""Small tiles that a thread block holds in shared memory, as plans for `skeletons/block2d.cuh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_in, ended
from peergrid.codegen.cuda.common.structs import constants, numbers, picked, struct
from peergrid.codegen.cuda.fused.block.cells import BlockCells2D
from peergrid.stencil import Growth, footprint


@dataclass(frozen=True)
class Block2D(BlockCells2D):
    """The text of the tiles of one problem."""

    @property
    def applied(self) -> tuple[Applied, ...]:
        """All updates of the stages."""
        return tuple(applied for stage in self.problem.stages for applied in applied_in(stage))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        stages = (self._stage(updates, number) for number in range(len(self.problem.stages)))
        return "\n".join((*stages, self._plan(updates)))

    def _stage(self, updates: Updates, number: int) -> str:
        stage = self.problem.stages[number]
        applied, targets, mixed = applied_in(stage), list(stage.targets), self.mixed(stage)
        final = ended(self.problem, number)
        growth = reduce(Growth.__or__, footprint(self.problem, 1).targets[0][number].values())
        writes = ((updates.number(name), int(name in mixed), int(name in final)) for name in targets)
        given = constants(WRITTEN=len(targets), UPDATES=len(applied), REACHED=_sides(growth), WRITES=writes)
        return struct(f"BlockStage{number}", given, updates.chosen(applied, targets))

    def _plan(self, updates: Updates) -> str:
        names, number = self.problem.fields, updates.number
        given = constants(
            STEPS=self.steps,
            STAGES=len(self.problem.stages),
            WIDTH=self.width,
            WARPS=self.warps,
            VALUES=self.values,
            REACH=_sides(self.reach),
            LONGEST_PROFILE=max((profile.length for profile in self.profiles.values()), default=0),
            START=[self.starts.get(name, 0) for name in names],
            PROFILES=[self.profiles.get(name, (0, 0, 0)) for name in names],
            DOUBLE=[name in self.double for name in names],
        )
        lists = numbers(Loaded=map(number, self.starts), Profiles=map(number, self.profiles))
        stages = picked("Stage", (f"BlockStage{number}" for number in range(len(self.problem.stages))))
        return struct("Block", given, lists, stages)


def _sides(growth: Growth) -> tuple[int, ...]:
    return growth.below[0], growth.above[0], growth.below[1], growth.above[1]
