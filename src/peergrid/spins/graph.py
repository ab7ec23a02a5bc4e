"""Random bipartite graphs in which every variable has four neighbours of the other colour."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from peergrid.arguments import brief, check_array, is_whole
from peergrid.errors import UsageError
from peergrid.spins.philox import Words, check_seed, philox

NEIGHBOURS = 4
WORD = 32
"""Variables in a word."""
GRAPH_STREAM = 2
"""The last word of the counters that draw graphs; 0 and 1 are those of steps and of first values."""


@dataclass(frozen=True, eq=False)
class BipartiteGraph:
    """The neighbours of each variable, by number among those of the other colour: uint32, (variables per colour, 4)."""

    red: Words
    blue: Words

    def __post_init__(self) -> None:
        for name in ("red", "blue"):
            check_array(name, getattr(self, name), 2, "u", "unsigned whole numbers")
        if self.red.shape != self.blue.shape or self.red.shape[1:] != (NEIGHBOURS,) or not len(self.red):
            raise UsageError(
                f"Both colours have as many variables, each with {NEIGHBOURS} neighbours; got arrays of shape "
                f"{self.red.shape} and {self.blue.shape}."
            )
        if len(self.red) % WORD:
            raise UsageError(f"A colour has a multiple of {WORD} variables, got {len(self.red)}.")

    @property
    def per_colour(self) -> int:
        """Variables of a colour."""
        return len(self.red)

    @property
    def words(self) -> int:
        """Words that hold the variables of a colour."""
        return self.per_colour // WORD


def random_graph(per_colour: int, seed: int) -> BipartiteGraph:
    """A graph of four random matchings: neighbour k of red variable i is the k-th matching's partner of i.

    Two matchings may join the same pair, which is rare in large graphs. The matchings are the orders of random numbers
    by counter, so that a seed always gives the same graph.
    """
    if not is_whole(per_colour) or per_colour < WORD or per_colour % WORD or per_colour > 1 << 31:
        raise UsageError(f"A colour has a multiple of {WORD} variables, at most {1 << 31:,}, got {brief(per_colour)}.")
    check_seed(seed)
    drawn = philox((np.arange(per_colour, dtype=np.uint32), 0, 0, GRAPH_STREAM), seed)
    with ThreadPoolExecutor(NEIGHBOURS) as threads:
        pairs = list(threads.map(_matching, drawn))
    return BipartiteGraph(*(np.ascontiguousarray(np.stack(side, axis=1)) for side in zip(*pairs, strict=True)))


def _matching(drawn: Words) -> tuple[Words, Words]:
    """The partner of each red variable, and of each blue one; equal numbers keep their order."""
    red = np.argsort(drawn, kind="stable").astype(np.uint32)
    blue = np.empty_like(red)
    blue[red] = np.arange(len(red), dtype=np.uint32)
    return red, blue
