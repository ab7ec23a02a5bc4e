"""The kernel of boundary tiles, by `skeletons/boundary2d.cuh`: rings, and which updates make a stage where.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked.step_plan import StagePlan
from peergrid.codegen.cuda.blocked2d.boundary.rings import BoundaryRings, BoundaryShape, Ring
from peergrid.codegen.cuda.blocked2d.updates import Applied, Updates, listed
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.norm import NORM_COLUMNS
from peergrid.stencil import Problem, footprint
from peergrid.stencil.problem import Update

FEW_REGISTERS = 72  # of a thread, that a tile can do with

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, {blocks})
{entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared{norms});
}}
"""

TILE = """\
__device__ __forceinline__ void {entry}_tile(const Arguments& a, const Region& tile, const int source,
    const int target, const long long step0, unsigned char* const shared{more}) {{
  boundary2d_tile<Boundary{sums}>(a, tile, source, target, step0, shared{zero});
}}
"""

STAGE = """\
struct BoundaryStage{number} {{
  static constexpr int LAG = {lag}, READS = {reads}, WRITTEN = {written}, UPDATES = {updates};
  static constexpr int ROWS_READ[READS][3] = {{{rows_read}}};
  static constexpr int WRITES[WRITTEN][4] = {{{writes}}};
  static constexpr UpdateBox BOXES[] = {{{boxes}}};
  template <int UPDATE, class C> __device__ __forceinline__ static void update(const C& cell, R* const next) {{
{calls}
  }}
}};
"""

PLAN = """\
struct Boundary {{
  static constexpr int STEPS = {steps}, STAGES = {stages}, WIDTH = {width}, AHEAD = {ahead}, LAG = {lag};
  static constexpr int STRIDE = {stride}, PAD = {pad}, ROWS_BESIDE = {rows_beside}, MOST_ROWS = {most_rows};
  static constexpr int ABOVE = {above}, BELOW = {below}, LEFT = {left}, RIGHT = {right};
  static constexpr int NORM = {norm}, NORM_RING = {norm_ring}, LOAD_COUNT = {load_count};
  static constexpr Ring RINGS[] = {{{rings}}};
  static constexpr int LOADS[][3] = {{{loads}}};
  static constexpr int PROFILE_START[] = {{{profile_start}}};
  using Profiles = Numbers<{profiles}>;
  template <int NUMBER> using Stage = Pick<NUMBER, {structs}>;
}};
"""


@dataclass(frozen=True)
class Boundary2D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: BoundaryShape
    entry: str = "edge2d"
    norm: str | None = None

    @cached_property
    def rings(self) -> BoundaryRings:
        return BoundaryRings(self.problem, self.shape, self.norm)

    @property
    def threads(self) -> int:
        """Threads of a block: a warp for each step, one to load."""
        return 32 * (self.shape.steps + 1)

    @property
    def blocks(self) -> int:
        """How many blocks of a multiprocessor the compiler has to leave registers for: they hide each other's waits."""
        return max(1, min(self.rings.blocks, H200.registers // (FEW_REGISTERS * self.threads)))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.rings.shared_bytes

    @cached_property
    def beside(self) -> tuple[int, int]:
        """The columns that a tile loads on its left and right; for a norm, on the left in whole blocks."""
        inputs = footprint(self.problem, self.shape.steps).inputs.values()
        left, right = max(g.below[1] for g in inputs), max(g.above[1] for g in inputs)
        return (-(-left // NORM_COLUMNS) * NORM_COLUMNS if self.norm else left), right

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(Arguments(self.problem), self.norm), self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose blocks take one tile each."""
        more, norms = norm_parameter(self.norm), norm_argument(self.norm)
        return KERNEL.format(entry=self.entry, threads=self.threads, blocks=self.blocks, more=more, norms=norms)

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        skeletons = ("boundary2d.cuh", "boundary_norm2d.cuh") if self.norm else ("boundary2d.cuh",)
        stages = (self._stage(number, plan) for number, plan in enumerate(self._plans))
        sums, zero = (", BoundarySums<Boundary>", ", {norms, {}}") if self.norm else ("", "")
        function = TILE.format(entry=self.entry, more=norm_reference(self.norm), sums=sums, zero=zero)
        tables = self._updates.tables(self.shape.steps)
        return "\n".join((tables, include(*skeletons), self._updates.source, *stages, self._plan, function))

    @cached_property
    def _plans(self) -> tuple[StagePlan, ...]:
        """The stages that do something: all but those that leave rows where and as they are."""
        return tuple(
            plan for plan in self.rings.plan.stages if _applied(plan) or not all(map(plan.in_place, plan.targets))
        )

    @cached_property
    def _updates(self) -> Updates:
        return Updates(self.problem, tuple(applied for plan in self._plans for applied in _applied(plan)))

    @cached_property
    def _rings(self) -> tuple[Ring, ...]:
        plan, rings = self.rings.plan, self.rings
        rows = (*plan.given.values(), *(rows for stage in plan.stages for rows in stage.targets.values()))
        found = (*map(rings.ring, rows), *map(rings.coefficient_ring, rings.coefficients))
        return tuple(dict.fromkeys(found))

    def _stage(self, number: int, plan: StagePlan) -> str:
        reads, applied, targets = self._rows_read(plan), _applied(plan), list(plan.targets)
        final = [self.rings.plan.last_stage(name) == plan.number for name in targets]
        field = self._updates.number
        writes = (
            (
                field(name),
                self._rings.index(self.rings.ring(plan.targets[name])),
                [r[:2] for r in reads].index((name, 0)),
                int(last),
            )
            for name, last in zip(targets, final, strict=True)
        )
        return STAGE.format(
            number=number,
            lag=plan.lag,
            reads=len(reads),
            written=len(targets),
            updates=len(applied),
            rows_read=listed(listed((field(name), offset, ring), "{}") for name, offset, ring in reads),
            writes=listed(listed(row, "{}") for row in writes),
            boxes=listed(listed(self._box(update), "{}") for update, _ in applied) or "{}",
            calls="\n".join(
                f"    if constexpr (UPDATE == {place}) {self._call(update, targets)}"
                for place, update in enumerate(applied)
            ),
        )

    def _call(self, applied: Applied, targets: list[str]) -> str:
        results = listed(f"next[{targets.index(assignment.target)}]" for assignment in applied[1])
        return f"{self._updates.functions[applied]}(cell, {results});"

    def _rows_read(self, plan: StagePlan) -> list[tuple[str, int, int]]:
        """The field, the offset and the ring of the rows that a stage reads."""
        offsets = {(r.field, r.offset[0]) for u in plan.stage.updates for r in u.reads}
        offsets |= {(target, 0) for target in plan.targets}
        found = []
        for name, offset in sorted(offsets):
            if name in plan.before:
                found.append((name, offset, self._rings.index(self.rings.ring(plan.before[name]))))
            elif name in self.rings.coefficients:
                found.append((name, offset, self._rings.index(self.rings.coefficient_ring(name))))
        return found

    def _box(self, update: Update) -> Iterator[int]:
        """The constants of an `UpdateBox`."""
        movable = Arguments(self.problem).movable
        yield movable.index(update) if update in movable else -1
        yield from ((0, 0) if update in movable else update.box.lo)
        yield from update.box.shape

    @property
    def _plan(self) -> str:
        rings, number = self.rings, self._updates.number
        above, below = row_reach(self.problem, self.shape.steps)
        loads = [(number(name), *found) for name in self.problem.fields if (found := rings.loaded(name)) is not None]
        starts = [rings.starts.get(f"profile {name}", (0, 0))[0] for name in self.problem.fields]
        return PLAN.format(
            steps=self.shape.steps,
            stages=len(self._plans),
            width=self.shape.width,
            ahead=self.shape.ahead,
            lag=rings.plan.lag,
            stride=rings.stride,
            pad=rings.pad,
            rows_beside=rings.pads[0],
            most_rows=rings.rows,
            above=above,
            below=below,
            left=self.beside[0],
            right=self.beside[1],
            norm=number(self.norm) if self.norm else -1,
            norm_ring=self._rings.index(rings.ring(rings.plan.given[self.norm])) if self.norm else -1,
            load_count=len(loads),
            rings=listed(listed(ring, "{}") for ring in self._rings),
            loads=listed(listed(load, "{}") for load in loads),
            profile_start=listed(starts),
            profiles=listed(map(number, rings.profiles)),
            structs=listed(f"BoundaryStage{number}" for number in range(len(self._plans))),
        )


def _applied(plan: StagePlan) -> tuple[Applied, ...]:
    return tuple((update, update.assignments) for update in plan.stage.updates if not update.box.empty)
