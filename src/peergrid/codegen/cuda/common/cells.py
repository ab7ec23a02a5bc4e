"""The statements that give some variables the new values of a cell, whatever the way in which reads are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import cell_text
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment


def assigned(
    arguments: Arguments,
    assignments: Sequence[Assignment],
    names: Sequence[str],
    read: Callable[[Read], str],
    prefix: str = "t",
    step: str = "step",
) -> Iterator[str]:
    """One statement `<name> = …;` for each assignment, in order, and before it what is used more than once.

    names: variables that nothing else writes before the last statement; prefix: what the names of other values begin
    with; step: the number of the time step, in C++.
    """
    results = cell_text(
        [assignment.value for assignment in assignments],
        read,
        arguments.param,
        lambda signal: arguments.now(signal, step),
        arguments.problem.grid.dtype,
        prefix,
        names,
    )
    for name, result in zip(names, results, strict=True):
        yield from result.declarations
        yield f"{name} = {result.value};"
