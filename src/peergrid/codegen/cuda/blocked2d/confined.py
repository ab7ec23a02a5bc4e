"""Fields that only the tiles which touch their boxes have to deal with, such as the memory of absorbing layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.stencil import Problem

BITS = 32


@dataclass(frozen=True)
class Confined:
    """The confined fields of a problem: a bit each in the word `here` of a tile; none where the grid wraps."""

    problem: Problem

    @cached_property
    def names(self) -> tuple[str, ...]:
        fields, grid = self.problem.fields, self.problem.grid
        names = [name for name in self.problem.state if fields[name].box != grid.box]
        return () if any(grid.periodic) else tuple(names[:BITS])

    def bit(self, name: str) -> str:
        """The text of a field's bit."""
        return f"{1 << self.names.index(name)}u"

    def test(self, name: str) -> str:
        """The text in front of what a tile does with a field, if only some tiles do it."""
        return f"if (here & {self.bit(name)}) " if name in self.names else ""
