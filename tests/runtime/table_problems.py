"""Problems that look up what their cells are made of, in one to three dimensions, also at places that no table has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peergrid.grid import Array, Boundary, Box, Dtype, Grid, Index
from peergrid.stencil import Problem, Receiver, stencil

ODD = (np.nan, np.inf, -np.inf, 1e30, -0.5, 0.99)
"""Indices that are no places: NaN and those below 0 mean the first entry, those beyond the last one that."""


def indices(shape: Index, count: int, seed: int = 5) -> Array:
    """Places in tables of so many entries, some of which do not exist."""
    rng = np.random.default_rng(seed)
    found: Array = rng.integers(-1, count + 1, shape).astype(np.float64)
    found.reshape(-1)[rng.integers(0, found.size, 3 * len(ODD))] = ODD * 3
    return found


def neighbours(ndim: int) -> tuple[Index, ...]:
    """The offsets of the cells beside one, below and above along each axis."""
    return tuple(tuple(side * (k == axis) for k in range(ndim)) for axis in range(ndim) for side in (-1, 1))


@stencil
def mixed(u: Any, index: Any, keep: Any, share: Any) -> None:
    """A look-up of a coefficient's whole number, one of a computed number, and two at the same place."""
    ndim = u.described.grid.ndim
    here = (0,) * ndim
    total = sum((u[at] for at in neighbours(ndim)), start=share[2.5 * abs(u[here])])
    u.next[here] = keep[index[here]] * u[here] + share[index[here]] * total


Edges = Boundary | Sequence[Boundary]


def media(shape: int | Sequence[int], boundary: Edges = "fixed", dtype: Dtype = "float32", count: int = 12) -> Problem:
    """Heat in so many media by index."""
    grid = Grid(shape, boundary, dtype)
    rng = np.random.default_rng(3)
    u, index = grid.field("u", rng.uniform(-1, 1, grid.shape)), grid.field("index", indices(grid.shape, count))
    keep, share = (grid.table(name, rng.uniform(0, 0.1, count)) for name in ("keep", "share"))
    return Problem.of(mixed(u, index, keep, share))


def layered(shape: int | Sequence[int], boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    """The same with other tables in a corner, and a receiver."""
    plain = media(shape, boundary, dtype)
    grid, rng = plain.grid, np.random.default_rng(4)
    (update,) = plain.stages[0].updates
    u, index, keep = plain.fields["u"], plain.fields["index"], plain.tables["keep"]
    other = grid.table("other", rng.uniform(0, 0.1, 3))
    corner = Box((0,) * grid.ndim, tuple(max(1, n // 3) for n in grid.shape))
    return Problem.of(
        [update, mixed(u, index, other, keep).within(corner)],
        [Receiver("r", "u", tuple(n // 2 for n in grid.shape))],
    )
