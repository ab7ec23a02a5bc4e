"""A problem's fields and updates as text, each update a function in the user's names: the same for all skeletons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.levels import usual_updates
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import cell_text
from peergrid.codegen.cuda.common.names import identifiers, listed
from peergrid.codegen.cuda.common.structs import constants
from peergrid.codegen.cuda.skeletons import words
from peergrid.codegen.regions import FAR
from peergrid.grid import Field
from peergrid.stencil import Growth, Problem, Stage, footprint
from peergrid.stencil.problem import Assignment, Update
from peergrid.stencil.remember import remembered

BITS = 31  # of the word `here` of a tile
Applied = tuple[Update, tuple[Assignment, ...]]
"""An update, and those of its assignments that are wanted of it."""

ACCESS = """\
// What an update reads: a field at an offset, a parameter, the sample of a signal at the step.
template <int FIELD, int... OFFSETS, class C> __device__ __forceinline__ R at(const C& cell) {
  if constexpr (PROFILE_AXIS[FIELD] < 0)
    return cell.template at<FIELD, OFFSETS...>();
  else
    return cell.template profile<FIELD, PROFILE_AXIS[FIELD], OFFSETS...>();
}
"""

VALUE = """\
template <class C> __device__ __forceinline__ R {name}(const C& cell) {{ return {value}; }}
"""

ENTRIES = """\
template <class C> __device__ __forceinline__ const R* {name}(const C& cell) {{ return {entries}; }}
"""

AT_ONCE = """\
template <class C> __device__ __forceinline__ static void update(const C& cell, R* const next) {{
{calls}
}}
"""
CHOSEN = AT_ONCE.replace("<class C>", "<int UPDATE, class C>")

UPDATE = """\
template <class C> __device__ __forceinline__ void {name}(const C& cell, {results}) {{
{lines}
}}
"""


@dataclass(frozen=True)
class Updates:
    """The functions of some updates of a problem."""

    problem: Problem
    applied: tuple[Applied, ...]

    @cached_property
    def names(self) -> dict[str, str]:
        """Identifiers of fields."""
        return identifiers(self.problem.fields, words())

    @cached_property
    def functions(self) -> dict[Applied, str]:
        """Identifiers of the updates."""
        found: dict[Applied, str] = {}
        taken = {*words(), *self.names.values(), *self._values.values()}
        for applied in dict.fromkeys(self.applied):
            (name,) = identifiers((applied[0].name,), taken).values()
            found[applied] = name
            taken.add(name)
        return found

    def call(self, applied: Applied, targets: Sequence[str]) -> str:
        """The statement that applies an update to a cell, its results in `next`, in the order of a stage's targets."""
        results = listed(f"next[{targets.index(assignment.target)}]" for assignment in applied[1])
        return f"{self.functions[applied]}(cell, {results});"

    def at_once(self, applied: Iterable[Applied], targets: Sequence[str]) -> str:
        """The member of a stage that applies all of its updates to a cell."""
        return AT_ONCE.format(calls="\n".join(f"  {self.call(one, targets)}" for one in applied))

    def chosen(self, applied: Iterable[Applied], targets: Sequence[str]) -> str:
        """The members of a stage that say where its updates apply, and apply the one of number `UPDATE`."""
        applied = tuple(applied)
        boxes = constants("UpdateBox", BOXES=map(self._box, applied) if applied else [()])
        calls = (f"  if constexpr (UPDATE == {n}) {self.call(one, targets)}" for n, one in enumerate(applied))
        return "\n".join((boxes, CHOSEN.format(calls="\n".join(calls))))

    def _box(self, applied: Applied) -> tuple[int, ...]:
        """The constants of an `UpdateBox`."""
        update, movable = applied[0], Arguments(self.problem).movable
        where = (movable.index(update), *(0,) * update.box.ndim) if update in movable else (-1, *update.box.lo)
        return (*where, *update.box.shape)

    def number(self, name: str) -> str:
        """The text of a field's number."""
        return self.names[name]

    @property
    def source(self) -> str:
        """The functions by which updates read, and the updates."""
        return "\n".join((ACCESS + "".join(self._accesses()), *self._updates()))

    def tables(self, steps: int) -> str:
        """The numbers of the fields, and what kernels of so many steps ask about fields and grid, see `bounds.cuh`."""
        problem, grid = self.problem, self.problem.grid
        recorded, bits = {receiver.field for receiver in problem.receivers}, confined_bits(problem)
        boxes = (unbounded(problem, field.box) for field in problem.fields.values())
        given = constants(
            AXES=grid.ndim,
            STATE=[name in problem.state for name in problem.fields],
            RECORDED=[name in recorded for name in problem.fields],
            PROFILE_AXIS=[-1 if field.full else field.axes[0] for field in problem.fields.values()],
            CONFINED=[bits.get(name, 0) for name in problem.fields],
            KNOWN=[self._known(field, steps) for field in problem.fields.values()],
            BOX=[zip(box.lo, box.hi, strict=True) for box in boxes],
            GRID_SHAPE=grid.shape,
            GRID_WRAPS=grid.periodic,
            GRID_MIRRORS=[boundary == "reflecting" for boundary in grid.boundary],
        )
        return f"enum {{ {listed(self.names.values())} }};\n{given}\n"

    def _known(self, field: Field, steps: int) -> Iterator[tuple[int, int, int, int]]:
        growth = footprint(self.problem, steps).inputs.get(field.name, Growth.none(self.problem.grid.ndim))
        for axis, wraps in enumerate(self.problem.grid.periodic):
            least, most = (-FAR, FAR) if wraps else (field.box.lo[axis], field.box.hi[axis])
            yield growth.below[axis], least, growth.above[axis], most

    @cached_property
    def _values(self) -> dict[str, str]:
        """Identifiers of parameters, signals and tables."""
        given = Arguments(self.problem)
        return identifiers((*given.params, *given.signals, *given.tables), (*words(), *self.names.values()))

    def _accesses(self) -> Iterator[str]:
        """The values that an update names beside fields."""
        given = Arguments(self.problem)
        for place, key in enumerate(given.params):
            yield VALUE.format(name=self._values[key], value=f"cell.a.params[{place}]")
        for place, key in enumerate(given.signals):
            yield VALUE.format(name=self._values[key], value=f"cell.signal({place})")
        for key in given.tables:
            yield ENTRIES.format(name=self._values[key], entries=f"cell.{given.entries(key)}")

    def _entry(self, table: str, index: str) -> str:
        return Arguments(self.problem).entry(table, index, f"{self._values[table]}(cell)")

    def _updates(self) -> Iterator[str]:
        for (_, assignments), name in self.functions.items():
            results = listed(f"R& next_{self.names[a.target]}" for a in assignments)
            yield UPDATE.format(name=name, results=results, lines="\n".join(self._lines(assignments)))

    def _lines(self, assignments: Sequence[Assignment]) -> Iterator[str]:
        """The statements of an update."""
        names = [f"next_{self.names[assignment.target]}" for assignment in assignments]
        results = cell_text(
            [assignment.value for assignment in assignments],
            lambda read: f"at<{listed((self.names[read.field], *read.offset))}>(cell)",
            lambda key: f"{self._values[key]}(cell)",
            lambda signal: f"{self._values[signal]}(cell)",
            self._entry,
            self.problem.grid.dtype,
            "value_",
            names,
        )
        for name, result in zip(names, results, strict=True):
            yield from (f"  {line}" for line in result.declarations)
            yield f"  {name} = {result.value};"


@remembered()
def confined_bits(problem: Problem) -> dict[str, int]:
    """Fields that only the tiles which touch their boxes have to deal with, such as the memory of absorbing layers, a
    bit for each in the word `here` of a tile; none where the grid wraps.
    """
    fields, grid = problem.fields, problem.grid
    names = [name for name in problem.state if fields[name].box != grid.box]
    return {} if any(grid.periodic) else {name: 1 << number for number, name in enumerate(names[:BITS])}


def applied_inside(problem: Problem, number: int) -> tuple[Applied, ...]:
    """The updates of a stage in the interior, each with its assignments that apply there."""
    assigned = usual_updates(problem)[number].values()
    return tuple(
        (update, tuple(assignment for other, assignment in assigned if other is update))
        for update in dict.fromkeys(update for update, _ in assigned)
    )


def applied_in(stage: Stage) -> tuple[Applied, ...]:
    """The updates of a stage that apply anywhere, with all their assignments."""
    return tuple((update, update.assignments) for update in stage.updates if not update.box.empty)


def ended(problem: Problem, number: int) -> tuple[str, ...]:
    """The fields that a stage writes and no later one of the step."""
    later = {name for stage in problem.stages[number + 1 :] for name in stage.targets}
    return tuple(name for name in problem.stages[number].targets if name not in later)
