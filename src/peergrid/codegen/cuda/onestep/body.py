"""The arithmetic of one cell: from a variant's assignments to statements, whatever the way its reads are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import MOST_NESTED, cell_text
from peergrid.codegen.cuda.onestep.regions import Variant
from peergrid.stencil.expr import Expr, Now, Read, ordered
from peergrid.stencil.program import composed

Reader = Callable[[Read], str]


@dataclass(frozen=True)
class Body:
    """The statements of a variant and where its results are."""

    arguments: Arguments
    variant: Variant

    @cached_property
    def values(self) -> tuple[Expr, ...]:
        """The value of each assignment in terms of values in memory before the first."""
        problem = self.arguments.problem
        made: list[Expr] = []
        before: dict[Expr, Expr] = {}
        after: dict[Expr, Expr] = {}
        stage = -1
        for member in self.variant.members:
            if member.stage != stage:
                before, stage = dict(after), member.stage
            assignment = member.of(problem)
            made.append(composed(assignment.value, before))
            after[self._own(assignment.target)] = made[-1]
        return tuple(made)

    @property
    def uses_signals(self) -> bool:
        return any(isinstance(part, Now) for part in ordered(self.values))

    def loads(self) -> tuple[Read, ...]:
        """Every read that memory has to answer, each once; a carried field is read at its own cell."""
        found: dict[Read, None] = {}

        def read(node: Read) -> str:
            found[node] = None
            return ""

        for _ in self.statements(read, ("0",) * self.arguments.problem.grid.ndim):
            pass
        for name in self.variant.stored:
            self.result(name, read)
        return tuple(found)

    def statements(self, read: Reader, cell: Sequence[str], lane: str = "", nested: int = MOST_NESTED) -> Iterator[str]:
        """One declaration `const R v<n> = …;` for each assignment, in order, and before it what several values use.

        cell: texts of the cell's index; lane: what names end with (`v`) or have within (`t`) where several cells are
        written side by side; nested: see `cell_text`.
        """
        given, problem = self.arguments, self.arguments.problem
        names = [f"v{number}{lane}" for number in range(len(self.values))]
        prefix = f"t{lane}_" if lane else "t"

        def now(signal: str) -> str:
            return given.now(signal, cell=cell)

        dtype = problem.grid.dtype
        found = cell_text(self.values, read, given.param, now, given.entry, dtype, prefix, names, nested)
        for name, member, result in zip(names, self.variant.members, found, strict=True):
            yield from result.declarations
            yield f"const R {name} = {result.value};  // {member.of(problem).target}, stage {member.stage}"

    def result(self, name: str, read: Reader, lane: str = "") -> str:
        """The text of a stored field's new value; lane: see `statements`."""
        problem = self.arguments.problem
        made = [n for n, member in enumerate(self.variant.members) if member.of(problem).target == name]
        return f"v{made[-1]}{lane}" if made else read(self._own(name))

    def _own(self, name: str) -> Read:
        """The read of a field at the cell itself."""
        return Read(name, (0,) * self.arguments.problem.grid.ndim)
