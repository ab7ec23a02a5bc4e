"""The states of a run from the last to the first; few are kept in memory, the others computed again.

Method: Griewank and Walther, ACM Transactions on Mathematical Software 26 (2000) 19 (revolve): with s states kept and
no step made more than r times, (s + r)! / (s! r!) - 1 steps can be gone back over, which is the most.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from peergrid.simulate import Simulation


def backwards(simulation: Simulation, last: int, kept: int) -> Iterator[int]:
    """Yield each step from `last` down to the present one, with the simulation in the state after that many steps.

    kept: states in host memory at a time, at least 1. Meanwhile the simulation may be read, not changed.
    """
    first = simulation.step
    if last > first:
        here = simulation.state()
        while last > first:
            middle = first + ahead(last - first, kept)
            simulation.run(middle - first)
            yield from backwards(simulation, last, kept - 1)
            simulation.restore(here)
            last = middle - 1
    yield first


def ahead(steps: int, kept: int) -> int:
    """The steps from the present state to the next one to keep, for `steps` steps to go back."""
    repeats = 1
    while comb(kept + repeats, kept) - 1 < steps:
        repeats += 1
    return max(1, steps - comb(kept - 1 + repeats, kept - 1) + 1)
