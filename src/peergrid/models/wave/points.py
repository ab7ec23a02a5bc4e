"""Points between nodes: the weights of the nodes around them, and sets of points as products of places along axes.

Method: Hicks, Geophysics 67 (2002) 156: a sinc under a Kaiser window, eight nodes along each axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Index
from peergrid.models.waveforms import Doubles

HALF, SHAPE = 4, 6.31  # nodes on each side, and the window's parameter (Hicks, table 1)
NEAR = 1e-6  # cells within which a point lies on a node
BEHIND, AHEAD = HALF - 1, HALF  # nodes before and after the one at or before a point


@dataclass(frozen=True)
class Place:
    """A position along an axis: the node at or before it, and the weights of nodes from `BEHIND` before that one on."""

    node: int
    weights: tuple[float, ...]

    @property
    def on_node(self) -> bool:
        return sum(w != 0 for w in self.weights) == 1


def place(cells: float) -> Place:
    """The position at a distance from node 0, in cells."""
    return along_axis(np.array([cells]))[0]


def along_axis(cells: Doubles) -> tuple[Place, ...]:
    """The positions at some distances from node 0, in cells."""
    nodes = np.floor(cells + NEAR)
    off = (cells - nodes)[:, None]
    k = np.arange(2 * HALF)
    x = k - BEHIND - off
    window = np.i0(SHAPE * np.sqrt(np.maximum(0.0, 1 - (x / HALF) ** 2))) / np.i0(SHAPE)
    weights = np.where(abs(off) <= NEAR, k == BEHIND, window * np.sinc(x))
    return tuple(map(Place, nodes.astype(int).tolist(), map(tuple, weights.tolist())))


def rounded(points: Doubles) -> Doubles:
    """Points, in cells, rounded to the precision with which they are distinguished, for sources as for receivers."""
    found: Doubles = np.round(points / NEAR) * NEAR
    return found


def footprint(point: Sequence[float]) -> tuple[Box, Doubles]:
    """The nodes around a point, in cells, and their weights, of the box's shape."""
    places = [place(p) for p in point]
    lines = [np.trim_zeros(np.array(p.weights)) for p in places]
    first = [p.node - BEHIND + next(k for k, w in enumerate(p.weights) if w) for p in places]
    weights = lines[0]
    for line in lines[1:]:
        weights = np.multiply.outer(weights, line)
    return Box(tuple(first), tuple(a + n for a, n in zip(first, weights.shape, strict=True))), weights


@dataclass(frozen=True)
class Product:
    """All points with one of some places along each axis.

    places: along each axis, in order; numbers: of the points in the set they are from, one for each combination of
    places.
    """

    places: tuple[tuple[Place, ...], ...]
    numbers: NDArray[np.int64]

    def span(self, axis: int) -> tuple[int, int]:
        """The nodes of the places along an axis: first, and one past the last."""
        nodes = [p.node for p in self.places[axis]]
        return min(nodes), max(nodes) + 1

    def layers(self, axis: int) -> tuple[tuple[Place, ...], ...]:
        """The positions along an axis in groups without common nodes: the first position at each node, the second…"""
        found: list[list[Place]] = []
        for _, there in groupby(self.places[axis], key=lambda p: p.node):
            for number, p in enumerate(there):
                if number == len(found):
                    found.append([])
                found[number].append(p)
        return tuple(map(tuple, found))

    def cells(self) -> Iterator[tuple[int, Index, Index]]:
        """Each point's number with the cell of its nodes, and its layer along each axis."""
        layers = [
            {p: n for n, layer in enumerate(self.layers(axis)) for p in layer} for axis in range(len(self.places))
        ]
        for at in np.ndindex(*self.numbers.shape):
            here = [line[k] for line, k in zip(self.places, at, strict=True)]
            layer = tuple(known[p] for known, p in zip(layers, here, strict=True))
            yield int(self.numbers[at]), tuple(p.node for p in here), layer


def products(points: Doubles) -> Iterator[Product]:
    """A set of points, shape (points, axes), in cells, as few products that together have every point once."""
    yield from _split(points, np.arange(len(points)))


def _split(points: Doubles, numbers: NDArray[np.int64]) -> Iterator[Product]:
    if not len(numbers):
        return
    lines, where = zip(
        *(np.unique(points[numbers, axis], return_inverse=True) for axis in range(points.shape[1])), strict=True
    )
    shape = tuple(len(line) for line in lines)
    taken = np.full(shape, -1, dtype=np.int64)
    taken[tuple(where)] = numbers
    if (taken < 0).any() or len(numbers) > taken.size:
        yield from _parted(points, numbers, shape, where)
        return
    yield Product(tuple(map(along_axis, lines)), taken)


def _parted(
    points: Doubles, numbers: NDArray[np.int64], shape: tuple[int, ...], where: Sequence[NDArray[np.int64]]
) -> Iterator[Product]:
    """The points by their coordinate along the axis on which they have the fewest; what lies twice, apart."""
    several = [axis for axis, n in enumerate(shape) if n > 1]
    if not several:
        for number in numbers:
            yield from _split(points, np.array([number]))
        return
    axis = min(several, key=lambda axis: shape[axis])
    for k in range(shape[axis]):
        yield from _split(points, numbers[where[axis] == k])
