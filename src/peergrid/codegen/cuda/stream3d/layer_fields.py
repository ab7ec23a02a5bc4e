"""Fields of a layer alone, such as the memory of an absorber: each cell for itself."""

from __future__ import annotations

from peergrid.stencil import Problem


def of_layer(problem: Problem, name: str) -> bool:
    """True if a field exists on the smaller part of the grid."""
    field = problem.fields[name]
    return field.full and field.box.size <= problem.grid.box.size / 2


def alone(problem: Problem, name: str, number: int) -> bool:
    """True if nothing but one stage reads and writes a field, each cell for itself."""
    for place, stage in enumerate(problem.stages):
        for update in stage.updates:
            reads = [read for read in update.reads if read.field == name]
            if any(any(read.offset) for read in reads) or (place != number and (reads or name in update.targets)):
                return False
    return True
