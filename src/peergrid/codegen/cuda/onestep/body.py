"""The arithmetic of one cell: from a variant's assignments to statements, whatever the way its reads are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import emit
from peergrid.codegen.cuda.onestep.regions import Variant
from peergrid.stencil.expr import Now, Read, walk

Reader = Callable[[Read], str]


@dataclass(frozen=True)
class Body:
    """The statements of a variant and where its results are."""

    arguments: Arguments
    variant: Variant

    @property
    def uses_signals(self) -> bool:
        problem = self.arguments.problem
        parts = (part for m in self.variant.members for part in walk(m.of(problem).value))
        return any(isinstance(part, Now) for part in parts)

    def loads(self) -> tuple[Read, ...]:
        """Every read that memory has to answer, each once; a carried field is read at its own cell."""
        found: dict[Read, None] = {}

        def read(node: Read) -> str:
            found[node] = None
            return ""

        for _ in self.statements(read):
            pass
        for name in self.variant.stored:
            self.result(name, read)
        return tuple(found)

    def statements(self, read: Reader) -> Iterator[str]:
        """One declaration `const R v<n> = …;` for each assignment, in order."""
        problem, known = self.arguments.problem, dict[str, str]()
        fresh: dict[str, str] = {}
        stage = -1
        for number, member in enumerate(self.variant.members):
            if member.stage != stage:
                known |= fresh
                fresh, stage = {}, member.stage
            assignment = member.of(problem)
            text = emit(
                assignment.value,
                lambda node, known=dict(known): self._answer(node, known, read),  # type: ignore[misc]
                self.arguments.param,
                self.arguments.now,
                problem.grid.dtype,
            )
            fresh[assignment.target] = f"v{number}"
            yield f"const R v{number} = {text};  // {assignment.target}, stage {member.stage}"

    def result(self, name: str, read: Reader) -> str:
        """The text of a stored field's new value."""
        problem = self.arguments.problem
        made = [n for n, member in enumerate(self.variant.members) if member.of(problem).target == name]
        return f"v{made[-1]}" if made else read(Read(name, (0,) * problem.grid.ndim))

    def _answer(self, node: Read, known: dict[str, str], read: Reader) -> str:
        """A value made earlier in this thread, or one from memory."""
        if node.field in known and not any(node.offset):
            return known[node.field]
        return read(node)
