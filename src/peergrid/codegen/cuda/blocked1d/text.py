"""The programs of a plan: constants and updates, which Python writes, around `skeletons/tile1d.cuh`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import plain_fields, plain_updates
from peergrid.codegen.cuda.blocked.plain import FAR, unbounded
from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked1d.shape import Tile1D
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import cell_text
from peergrid.codegen.cuda.common.names import flag, letters
from peergrid.codegen.cuda.skeletons import include
from peergrid.stencil import Problem, Update, footprint
from peergrid.stencil.expr import Read

INTERIOR, BOUNDARY = "tile1d", "tile1d_boundary"
THREADS = 128  # of a boundary tile's block

UPDATE = """\
struct {name} {{
  template <class At>
  static __device__ __forceinline__ void update(const At& at, const Arguments& a, const long long step,
                                                R* const next) {{
{statements}
  }}
}};
"""

STAGE = """\
struct {name} {{
  static constexpr int RESULTS = {results};
  typedef List<{reads}> Reads;
  typedef List<{targets}> Targets;
  typedef List<{interior_targets}> Interior;
  template <class At>
  static __device__ __forceinline__ void interior(const At& at, const Arguments& a, const long long step,
                                                  R* const next) {{
{interior}
  }}
  template <class At>
  static __device__ __forceinline__ void boundary(const At& at, const Arguments& a, const int x, const long long step,
                                                  R* const next) {{
{boundary}
  }}
}};
"""

PLAN = """\
struct Plan {{
  static constexpr int FIELDS = {fields}, STEPS = {steps}, REACH = {reach};
  static constexpr int CELLS = {cells}, LEFT = {left}, USEFUL = {useful};
  static constexpr int BELOW = {below}, ABOVE = {above}, SEGMENT = {segment}, THREADS = {threads};
  static constexpr int EXTENT = {extent};
  static constexpr bool WRAPS = {wraps}, REFLECTS = {reflects};
  typedef List<{stored}> Fields;
  typedef List<{held}> Held;
  typedef List<{stages}> Stages;
}};
"""

INTERIOR_KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}) {entry}(const __grid_constant__ Arguments a) {{
  const int number = blockIdx.x * {warps} + (threadIdx.x >> 5);
  if (number < a.count) interior_range<Plan>(a, a.regions[number]);
}}
"""

BOUNDARY_KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, 4) {entry}(const __grid_constant__ Arguments a) {{
  extern __shared__ __align__(128) unsigned char shared[];
  boundary_tile<Plan>(a, a.regions[blockIdx.x], reinterpret_cast<R*>(shared));
}}
"""


@dataclass(frozen=True)
class Text1D:
    """The programs of the tiles of a pass."""

    tile: Tile1D

    @property
    def interior(self) -> str:
        """The translation unit of interior tiles."""
        shape = self.tile.shape
        return self._unit(INTERIOR_KERNEL.format(threads=32 * shape.warps, warps=shape.warps, entry=INTERIOR))

    @property
    def boundary(self) -> str:
        """The translation unit of boundary tiles."""
        return self._unit(BOUNDARY_KERNEL.format(threads=THREADS, entry=BOUNDARY))

    def _unit(self, kernel: str) -> str:
        stages = range(len(self.problem.stages))
        parts = (
            prelude(self._arguments),
            include("tile1d.cuh"),
            *self._names(),
            *(text for stage in stages for text in self._updates(stage)),
            *map(self._stage, stages),
            self._plan,
            kernel,
        )
        return "\n".join(parts)

    @property
    def problem(self) -> Problem:
        return self.tile.problem

    @property
    def _arguments(self) -> Arguments:
        return Arguments(self.problem)

    def _names(self) -> Iterator[str]:
        """By which name updates read a field."""
        for number, name in enumerate(self._arguments.fields):
            yield f"template <int X> using {_name(name)} = Read<{number}, X>;"

    def _updates(self, stage: int) -> Iterator[str]:
        targets = self.problem.stages[stage].targets
        for number, update in enumerate(self.problem.stages[stage].updates):
            lines = (f"    {line}" for line in self._statements(update, targets))
            yield UPDATE.format(name=_called(update, stage, number), statements="\n".join(lines))

    def _statements(self, update: Update, targets: Sequence[str]) -> Iterator[str]:
        """The new values of an update's targets, in order."""
        given, names = self._arguments, [f"next[{targets.index(target)}]" for target in update.targets]
        values = [assignment.value for assignment in update.assignments]
        found = cell_text(values, self._read, given.param, given.now, given.entry, self.problem.grid.dtype, names=names)
        for name, target, result in zip(names, update.targets, found, strict=True):
            yield from result.declarations
            yield f"{name} = {result.value};  // {target}"

    def _read(self, read: Read) -> str:
        return f"at({_name(read.field)}<{read.offset[0]}>{{}})"

    def _stage(self, stage: int) -> str:
        made = self.problem.stages[stage]
        plain = plain_updates(self.problem)[stage]
        fields = self._arguments.fields
        places = {name: f"Target<{fields.index(name)}, {place}>" for place, name in enumerate(made.targets)}
        reads = (f"Reach<{fields.index(name)}, {a}, {b}>" for name, (a, b) in self.tile.reads[stage].items())
        return STAGE.format(
            name=f"Stage_{stage}",
            results=len(made.targets),
            reads=", ".join(reads),
            targets=", ".join(places.values()),
            interior_targets=", ".join(places[name] for name in made.targets if name in plain),
            interior="\n".join(self._interior(stage)),
            boundary="\n".join(self._boundary(stage)),
        )

    def _interior(self, stage: int) -> Iterator[str]:
        """The updates of most cells; of what one of them writes, only what no other one writes in most cells."""
        made, plain = self.problem.stages[stage], plain_updates(self.problem)[stage]
        for number, update in enumerate(made.updates):
            kept = [name for name in update.targets if name in plain and plain[name][0] is update]
            called = _called(update, stage, number)
            if kept and len(kept) == len(update.targets):
                yield f"    {called}::update(at, a, step, next);"
            elif kept:
                yield f"    R made_{number}[RESULTS];"
                yield f"    {called}::update(at, a, step, made_{number});"
                for name in kept:
                    place = made.targets.index(name)
                    yield f"    next[{place}] = made_{number}[{place}];"

    def _boundary(self, stage: int) -> Iterator[str]:
        """Every update where it applies."""
        for number, update in enumerate(self.problem.stages[stage].updates):
            if not update.box.empty:
                lo, hi = self._arguments.bounds(update, 0)
                yield f"    if (x >= {lo} && x < {hi}) {_called(update, stage, number)}::update(at, a, step, next);"

    @property
    def _plan(self) -> str:
        tile, grid = self.tile, self.problem.grid
        return PLAN.format(
            fields=len(self._arguments.fields),
            steps=tile.shape.steps,
            reach=tile.reach,
            cells=tile.shape.cells,
            left=tile.margins[0],
            useful=tile.useful,
            below=tile.ghosts[0],
            above=tile.ghosts[1],
            segment=tile.segment,
            threads=THREADS,
            extent=grid.shape[0],
            wraps=flag(grid.periodic[0]),
            reflects=flag(grid.boundary[0] == "reflecting"),
            stored=", ".join(map(self._stored, tile.fields)),
            held=", ".join(map(self._stored, plain_fields(self.problem))),
            stages=", ".join(f"Stage_{stage}" for stage in range(len(self.problem.stages))),
        )

    def _stored(self, name: str) -> str:
        growth = footprint(self.problem, self.tile.shape.steps).inputs[name]
        box = unbounded(self.problem, self.problem.fields[name].box)
        numbers = growth.below[0], growth.above[0], max(-FAR, box.lo[0]), min(FAR, box.hi[0])
        number, state = self._arguments.fields.index(name), flag(name in self.problem.state)
        return f"Stored<{number}, {state}, {', '.join(map(str, numbers))}>"


def _called(update: Update, stage: int, number: int) -> str:
    """The name of an update's struct: the user's, made different from others of that name."""
    return f"{letters(update.name)}_{stage}_{number}"


def _name(field: str) -> str:
    return f"f_{letters(field)}"
