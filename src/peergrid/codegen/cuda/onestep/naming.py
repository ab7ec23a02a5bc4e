"""The names of fields, cells and versions in generated text."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.common.arguments import Arguments, Entry
from peergrid.codegen.cuda.common.names import letters
from peergrid.codegen.cuda.onestep.groups import SOURCE, TARGET

COORDINATES = ("i", "j", "k")


def coordinates(ndim: int) -> tuple[str, ...]:
    """The names of a cell's coordinates; the last axis is always k."""
    return COORDINATES[3 - ndim :]


@dataclass(frozen=True)
class Naming:
    """Names within one kernel of a problem."""

    arguments: Arguments

    def field(self, name: str) -> str:
        """An identifier for a field."""
        return f"{letters(name)}_{self.arguments.fields.index(name)}"

    def number(self, name: str) -> str:
        """The text of the place of a field."""
        return self.arguments.place(Entry("field", name))

    def block(self, name: str, version: int) -> str:
        """The pointer to a version of a field."""
        entry = f"a.fields[{self.number(name)}].slot"
        slots = {SOURCE: f"{entry}[a.source]", TARGET: f"{entry}[a.target]"}
        return slots.get(version) or f"a.scratch[{self.arguments.place(Entry('scratch', str(version)))}]"

    def at(self, name: str, index: dict[int, str], version: int) -> str:
        """The text of an offset into the block of a field's version; `index` gives the text of each coordinate."""
        ndim, axes = self.arguments.problem.grid.ndim, self.arguments.problem.fields[name].axes
        kind = "into" if version == TARGET else "pitch"
        pitched = self.arguments.place(self.arguments.pitches(name))
        terms = [
            f"({index[axis]})"
            if axis == ndim - 1 or len(axes) < ndim
            else f"(long long)({index[axis]}) * a.fields[{pitched}].{kind}[{axis}]"
            for axis in axes
        ]
        return " + ".join(terms)
