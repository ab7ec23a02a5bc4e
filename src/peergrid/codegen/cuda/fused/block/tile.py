"""Small tiles that a thread block holds in shared memory, as plans for `skeletons/block2d.cuh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.blocked2d.updates import Applied, Updates, applied_in, ended
from peergrid.codegen.cuda.common.names import flags, listed
from peergrid.codegen.cuda.fused.block.cells import BlockCells2D, BlockShape
from peergrid.stencil import Growth, footprint

__all__ = ["Block2D", "BlockShape"]

STAGE = """\
struct BlockStage{number} {{
  static constexpr int WRITTEN = {written}, UPDATES = {updates}, REACHED[4] = {{{reached}}};
  static constexpr int WRITES[WRITTEN][3] = {{{writes}}};
  static constexpr UpdateBox BOXES[] = {{{boxes}}};
  template <int UPDATE, class C> __device__ __forceinline__ static void update(const C& cell, R* const next) {{
{calls}
  }}
}};
"""

PLAN = """\
struct Block {{
  static constexpr int STEPS = {steps}, STAGES = {stages}, WIDTH = {width}, WARPS = {warps}, VALUES = {values};
  static constexpr int REACH[4] = {{{reach}}}, LONGEST_PROFILE = {longest};
  static constexpr int START[] = {{{start}}};
  static constexpr bool DOUBLE[] = {{{double}}};
  static constexpr int PROFILES[][3] = {{{profiles}}};  // where each begins, its values, those before the tile's
  using Loaded = Numbers<{loaded}>;
  using Profiles = Numbers<{profile_fields}>;
  template <int NUMBER> using Stage = Pick<NUMBER, {structs}>;
}};
"""


@dataclass(frozen=True)
class Block2D(BlockCells2D):
    """The text of the tiles for one problem and shape."""

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
        return STAGE.format(
            number=number,
            written=len(targets),
            updates=len(applied),
            reached=listed(_sides(growth)),
            writes=listed(listed(row, "{}") for row in writes),
            boxes=listed(map(updates.box, applied)) or "{}",
            calls=updates.choice(applied, targets),
        )

    def _plan(self, updates: Updates) -> str:
        names, number = self.problem.fields, updates.number
        return PLAN.format(
            steps=self.shape.steps,
            stages=len(self.problem.stages),
            width=self.shape.width,
            warps=self.shape.warps,
            values=self.values,
            reach=listed(_sides(self.reach)),
            longest=max((profile.length for profile in self.profiles.values()), default=0),
            start=listed(self.starts.get(name, 0) for name in names),
            double=flags(name in self.double for name in names),
            profiles=listed(listed(self.profiles.get(name, (0, 0, 0)), "{}") for name in names),
            loaded=listed(map(number, self.starts)),
            profile_fields=listed(map(number, self.profiles)),
            structs=listed(f"BlockStage{number}" for number in range(len(self.problem.stages))),
        )


def _sides(growth: Growth) -> tuple[int, ...]:
    return growth.below[0], growth.above[0], growth.below[1], growth.above[1]
