"""Fields that only the tiles which touch their boxes have to deal with, such as the memory of absorbing layers."""

from __future__ import annotations

from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

BITS = 32


@remembered()
def confined_bits(problem: Problem) -> dict[str, int]:
    """The confined fields of a problem, a bit for each in the word `here` of a tile; none where the grid wraps."""
    fields, grid = problem.fields, problem.grid
    names = [name for name in problem.state if fields[name].box != grid.box]
    return {} if any(grid.periodic) else {name: 1 << number for number, name in enumerate(names[:BITS])}
