"""The energy of variables on the Bethe lattice, to which a large random regular graph is locally equal."""

from __future__ import annotations

import math

from peergrid.spins.graph import NEIGHBOURS

CRITICAL = math.atanh(1 / (NEIGHBOURS - 1))
"""The coupling over the temperature above which the variables order."""


def bethe_energy(coupling: float) -> float:
    """The energy of a variable in units of the coupling, at or below `CRITICAL`: -2 tanh K for four neighbours.

    Every pair is a leaf of a tree with open ends, whose correlation is tanh K; R. J. Baxter, "Exactly Solved Models in
    Statistical Mechanics", chapter 4. Loops of a random graph have lengths that grow with its size.
    """
    return -NEIGHBOURS / 2 * math.tanh(coupling)
