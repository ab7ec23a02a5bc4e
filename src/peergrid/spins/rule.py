"""One half step: every variable of a colour is drawn anew, given its neighbours of the other (heat bath).

A variable is up with probability 1 / (1 + exp(-2 K h)), h the sum of its neighbours' ±1 and K the coupling over the
temperature; R. J. Glauber, "Time-dependent statistics of the Ising model", J. Math. Phys. 4 (1963). The draw compares
31 random bits with a threshold, in whole numbers, so that its result is the same on all devices.
"""

from __future__ import annotations

import math

import numpy as np

from peergrid.arguments import brief
from peergrid.errors import UsageError
from peergrid.spins.graph import NEIGHBOURS, WORD
from peergrid.spins.philox import Words, philox

STEP_STREAM, FIRST_STREAM = 0, 1
QUAD = 4
"""Words that one counter serves: lane l of quad q draws bit l of words 4 q to 4 q + 3."""


def thresholds(coupling: float) -> Words:
    """For 0 to 4 neighbours that are up, the numbers below 2³¹ that leave a variable up. Infinite: zero temperature.

    Raises UsageError if the coupling is NaN.
    """
    if not isinstance(coupling, int | float | np.number) or math.isnan(coupling):
        raise UsageError(f"The coupling over the temperature is a number, or infinite; got {brief(coupling)}.")
    sums = [2 * up - NEIGHBOURS for up in range(NEIGHBOURS + 1)]
    return np.array([round(2.0**31 * _probability(coupling, one)) for one in sums], np.uint32)


def _probability(coupling: float, neighbours: int) -> float:
    if neighbours == 0 or coupling == 0:
        return 0.5
    exponent = -2.0 * coupling * neighbours
    return 1.0 / (1.0 + math.exp(exponent)) if exponent < 700 else 0.0


def first_words(words: int, seed: int) -> Words:
    """The first values of the red variables: each up or down with equal probability."""
    return philox((np.arange(words, dtype=np.uint32), 0, 0, FIRST_STREAM), seed)[0]


def half_step(neighbours: Words, other: Words, words: tuple[int, int], step: int, seed: int, limits: Words) -> Words:
    """The new words of a colour from `words[0]` to `words[1]`, in NumPy: the definition of the rule.

    Args:
        neighbours: of all variables of the colour, shape (variables, 4).
        other: all words of the other colour.
        step: number of the half step, of both colours together.
        limits: see `thresholds`.
    """
    first, last = words
    quads = np.arange(first // QUAD, -(-last // QUAD), dtype=np.uint32)
    counter = quads[:, np.newaxis] * np.uint32(WORD) + np.arange(WORD, dtype=np.uint32)
    drawn = philox((counter.astype(np.uint32).ravel(), step & 0xFFFFFFFF, step >> 32, STEP_STREAM), seed)
    lanes = np.stack([word.reshape(-1, WORD) for word in drawn], axis=1).reshape(-1, WORD)
    lanes = lanes[first - QUAD * int(quads[0]) :][: last - first]
    partners = neighbours[first * WORD : last * WORD]
    up = (other[partners >> 5] >> (partners & np.uint32(31)) & np.uint32(1)).sum(axis=1)
    bits = (lanes.ravel() >> 1 < limits[up]).reshape(-1, WORD)
    return np.packbits(bits, axis=1, bitorder="little").view("<u4").ravel().astype(np.uint32)


def energy(neighbours: Words, red: Words, blue: Words) -> float:
    """The energy of a variable in units of the coupling: minus the sum over all pairs, over all variables.

    neighbours: those of the red variables.
    """
    partners = blue[neighbours >> 5] >> (neighbours & np.uint32(31)) & np.uint32(1)
    own = (red[:, np.newaxis] >> np.arange(WORD, dtype=np.uint32) & np.uint32(1)).reshape(-1, 1)
    pairs = neighbours.size
    unequal = int(np.count_nonzero(partners != own))
    return -(pairs - 2 * unequal) / (2 * len(neighbours))
