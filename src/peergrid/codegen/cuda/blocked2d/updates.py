"""A problem's fields and updates as text, each update a function in the user's names: the same for all skeletons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.plain import FAR, unbounded
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import cell_text
from peergrid.codegen.cuda.common.names import identifiers
from peergrid.codegen.cuda.skeletons import words
from peergrid.stencil import Problem, footprint
from peergrid.stencil.problem import Assignment, Update

Applied = tuple[Update, tuple[Assignment, ...]]
"""An update, and those of its assignments that are wanted of it."""

FIELDS = """\
enum {{ {names} }};  // the fields
__device__ constexpr bool STATE[] = {{{state}}};  // those with two slots, to read and to write
__device__ constexpr int PROFILE[] = {{{profile}}};  // axes of those that are profiles, else -1
"""

BOUNDS = """\
// Of each field: cells read below a box, its first row or -FAR, cells read above, its last row or FAR; of columns, too.
__device__ constexpr int KNOWN[][2][4] = {{{known}}};
// Of each field: its first and last row, and column.
__device__ constexpr int BOX[][2][2] = {{{boxes}}};
"""

ACCESS = """\
// What an update reads: a field at an offset, a parameter, the sample of a signal at the step.
template <int FIELD, int I, int J, class C> __device__ __forceinline__ R at(const C& cell) {
  if constexpr (PROFILE[FIELD] < 0) return cell.template at<FIELD, I, J>();
  else return cell.template profile<FIELD, PROFILE[FIELD], I, J>();
}
"""

VALUE = """\
template <class C> __device__ __forceinline__ R {name}(const C& cell) {{ return {value}; }}
"""

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

    @property
    def source(self) -> str:
        """What updates read, and the updates."""
        return "\n".join(("".join(self._accesses()), *self._updates()))

    @property
    def fields(self) -> str:
        """The numbers of the fields."""
        state = ", ".join(str(name in self.problem.state).lower() for name in self.names)
        fields = self.problem.fields.values()
        profile = ", ".join(str(-1 if described.full else described.axes[0]) for described in fields)
        return FIELDS.format(names=", ".join(self.names.values()), state=state, profile=profile)

    def bounds(self, steps: int) -> str:
        """Where fields have values, for kernels that ask."""
        known, boxes = [], []
        for name, described in self.problem.fields.items():
            growth, box = footprint(self.problem, steps).inputs.get(name), described.box
            ranges = []
            for axis in (0, 1):
                below, above = (growth.below[axis], growth.above[axis]) if growth else (0, 0)
                wraps = self.problem.grid.periodic[axis]
                least, most = (-FAR, FAR) if wraps else (box.lo[axis], box.hi[axis])
                ranges.append(f"{{{below}, {least}, {above}, {most}}}")
            known.append("{" + ", ".join(ranges) + "}")
            whole = unbounded(self.problem, box)
            boxes.append("{" + ", ".join(f"{{{lo}, {hi}}}" for lo, hi in zip(whole.lo, whole.hi, strict=True)) + "}")
        return BOUNDS.format(known=", ".join(known), boxes=", ".join(boxes))

    @cached_property
    def _values(self) -> dict[str, str]:
        """Identifiers of parameters and signals."""
        given = Arguments(self.problem)
        return identifiers((*given.params, *given.signals), (*words(), *self.names.values()))

    def _accesses(self) -> Iterator[str]:
        """How an update reads the fields and values that it names."""
        yield ACCESS
        given = Arguments(self.problem)
        for place, key in enumerate(given.params):
            yield VALUE.format(name=self._values[key], value=f"cell.a.params[{place}]")
        for place, key in enumerate(given.signals):
            yield VALUE.format(name=self._values[key], value=f"cell.signal({place})")

    def _updates(self) -> Iterator[str]:
        for (_, assignments), name in self.functions.items():
            results = ", ".join(f"R& next_{self.names[a.target]}" for a in assignments)
            yield UPDATE.format(name=name, results=results, lines="\n".join(self._lines(assignments)))

    def _lines(self, assignments: Sequence[Assignment]) -> Iterator[str]:
        """The statements of an update."""
        names = [f"next_{self.names[assignment.target]}" for assignment in assignments]
        results = cell_text(
            [assignment.value for assignment in assignments],
            lambda read: f"at<{self.names[read.field]}, {read.offset[0]}, {read.offset[1]}>(cell)",
            lambda key: f"{self._values[key]}(cell)",
            lambda signal: f"{self._values[signal]}(cell)",
            self.problem.grid.dtype,
            "value_",
            names,
        )
        for name, result in zip(names, results, strict=True):
            yield from (f"  {line}" for line in result.declarations)
            yield f"  {name} = {result.value};"
