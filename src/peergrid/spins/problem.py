"""Half steps as a problem, so that schedules, checkers, executors and ranks serve them.

A field of words has two slots: one holds red, the other blue. A half step reads all of one and writes the other, as
every pass does; so the halo of a device is the part of the field that it does not own, and the halo exchange is an
all-gather.
"""

from __future__ import annotations

import numpy as np

from peergrid.grid import Grid
from peergrid.spins.philox import Words
from peergrid.stencil import Cell, Problem, stencil

FIELD = "variables"


def half_steps(first: Words) -> Problem:
    """The problem whose step is one half step; first: the words of the colour that the first half step reads.

    The update declares that everything is read; `compiled` has the rule. Words are transferred as the bits of float32
    values.
    """
    grid = Grid((len(first),), boundary="reflecting")  # a read beyond an edge is one within
    field = grid.field(FIELD, first.view(np.float32))
    reach = len(first) - 1

    @stencil
    def everything(variables: Cell) -> None:
        variables.next[0] = variables[-reach] + variables[reach]

    return Problem.of(everything(field))
