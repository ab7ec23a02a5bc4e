"""Sources and receivers between nodes as stages of a step.

A receiver's value is interpolated along one axis after the other, by small updates on fields of their own; as part of
the step they have the same bits under any split. They come first in a step, when halos are there anyway: entry n of a
trace is the value before step n + 1, at time n · dt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Field, Grid, Index
from peergrid.models.wave.points import AHEAD, BEHIND, Place, Product, footprint, products
from peergrid.models.wave.stencils import add, inject, interpolation
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Receiver, Stage, Update

Gains = Callable[[Box], Sequence[Doubles]]
"""The change of each wave in a step by a source of strength 1 on a node, for each cell of a box."""

MOST = 16  # fields of one update


@dataclass(frozen=True)
class Recording:
    """The stages that interpolate, and the receivers of their results; names: of the receiver of each point."""

    stages: tuple[Stage, ...]
    receivers: tuple[Receiver, ...]
    names: tuple[str, ...]


def recording(waves: Sequence[Field], points: Doubles) -> Recording:
    """The stages and receivers of the mean of some waves at points, shape (points, axes), in cells."""
    chains, names = list[list[list[Update]]](), [""] * len(points)
    receivers = list[Receiver]()
    for number, product in enumerate(products(points)):
        chain, found = _chain(waves, product, f"receivers.{number}")
        chains.append(chain)
        for point, cell, layer in product.cells():
            names[point] = f"receiver.{point}"
            receivers.append(Receiver(names[point], found[layer].name, cell))
    depth = max(map(len, chains), default=0)
    stages = (tuple(update for c in chains if k < len(c) for update in c[k]) for k in range(depth))
    return Recording(tuple(map(Stage, stages)), tuple(receivers), tuple(names))


def _chain(waves: Sequence[Field], product: Product, name: str) -> tuple[list[list[Update]], dict[Index, Field]]:
    """The updates that interpolate along one axis after the other, that with the fewest places first, and the last
    fields, by the layers of the places along each axis.
    """
    grid, chain = waves[0].grid, list[list[Update]]()
    order = sorted(range(grid.ndim), key=lambda axis: len(product.places[axis]))
    between = [axis for axis in order if not all(p.on_node for p in product.places[axis])]
    box = Box(*zip(*(product.span(axis) for axis in range(grid.ndim)), strict=True))
    sources: dict[Index, tuple[Field, ...]] = {(0,) * grid.ndim: tuple(waves)}
    for number, axis in enumerate(between or order[:1]):
        wide = box
        for later in between[number + 1 :]:
            wide = wide.with_axis(later, box.lo[later] - BEHIND, box.hi[later] + AHEAD)
        layers, made, chained = product.layers(axis), dict[Index, tuple[Field, ...]](), list[Update]()
        for layer, source in sources.items():
            each = [tuple(n if k == axis else m for k, m in enumerate(layer)) for n in range(len(layers))]
            titles = [f"{name}.{'xyz'[axis]}{'-'.join(map(str, one)) if any(one) else ''}" for one in each]
            fields = [grid.field(title, within=wide) for title in titles]
            made |= {one: (field,) for one, field in zip(each, fields, strict=True)}
            given = zip(layers, titles, strict=True)
            weights = [_weights(grid, axis, places, title) if between else (1.0,) for places, title in given]
            stencil = interpolation(axis, BEHIND if between else 0)
            for first in range(0, len(fields), MOST):
                some = slice(first, first + MOST)
                chained.append(stencil(source, fields[some], weights[some]).within(wide))
        sources = made
        chain.append(chained)
    return chain, {layer: field for layer, (field,) in sources.items()}


def _weights(grid: Grid, axis: int, places: Sequence[Place], name: str) -> Sequence[Field | float]:
    """The weights of the nodes around each place along an axis: numbers where there is one place, else profiles."""
    if len(places) == 1:
        return places[0].weights
    lines = np.zeros((len(places[0].weights), grid.shape[axis]))
    for place in places:
        lines[:, place.node] = place.weights
    return [grid.profile(f"{name}.weight{k}", axis, line) for k, line in enumerate(lines)]


def injection(waves: Sequence[Field], gains: Gains, points: Doubles, samples: Doubles, top: int) -> list[Stage]:
    """The stages that add samples, shape (points, steps), times gains of the cells, to waves around points.

    top: the node of a free surface along the last axis, above which waves continue with the other sign (0: none).
    """
    grid, updates = waves[0].grid, list[Update]()
    for number, (point, series) in enumerate(zip(points, samples, strict=True)):
        box, weights = reflected(*footprint(point), top)
        fields = [
            grid.field(f"source.{number}.{u.name}", weights * gain, within=box)
            for u, gain in zip(waves, gains(box), strict=True)
        ]
        signal = grid.signal(f"source.{number}", series)
        updates.append(inject(tuple(waves), fields, signal).within(box))
    return apart(updates)


@dataclass(frozen=True, eq=False)
class Feed:
    """Point sources whose samples are set before each step: fields that a stage adds to the waves.

    cells: numbers of cells of `box`, one after another; points: the point of each; weights: of each, for each field.
    """

    stage: Stage
    fields: tuple[Field, ...]
    box: Box
    cells: NDArray[np.int64]
    points: NDArray[np.int64]
    weights: tuple[Doubles, ...]

    def values(self, samples: Doubles) -> Iterator[tuple[str, Doubles]]:
        """The values of each field for one step, from a sample of each point."""
        for field, weights in zip(self.fields, self.weights, strict=True):
            found: Doubles = np.bincount(self.cells, weights * samples[self.points], self.box.size).astype(np.float64)
            yield field.name, found.reshape(self.box.shape)


def feed(waves: Sequence[Field], gains: Gains, points: Doubles, top: int) -> Feed:
    """The feed of point sources, shape (points, axes), in cells; gains, top: as of `injection`."""
    grid = waves[0].grid
    parts = [reflected(*footprint(point), top) for point in points]
    box = reduce(Box.hull, (part for part, _ in parts))
    numbered = np.arange(box.size).reshape(box.shape)
    cells = [numbered[part.slices(box.lo)].ravel() for part, _ in parts]
    spread = [[(weights * gain).ravel() for gain in gains(part)] for part, weights in parts]
    weights = tuple(np.concatenate(lines) for lines in zip(*spread, strict=True))
    fields = tuple(grid.field(f"feed.{u.name}", within=box) for u in waves)
    numbers = np.repeat(np.arange(len(parts)), [part.size for part, _ in parts])
    stage = Stage((add(tuple(waves), fields).within(box),))
    return Feed(stage, fields, box, np.concatenate(cells), numbers, weights)


def reflected(box: Box, weights: Doubles, top: int) -> tuple[Box, Doubles]:
    """Weights of cells beyond a free surface taken from their mirror images."""
    axis = box.ndim - 1
    if not top or box.lo[axis] > top:
        return box, weights
    hi = max(box.hi[axis], 2 * top - box.lo[axis] + 1)
    found = np.zeros((*weights.shape[:-1], hi - top - 1))
    for k in range(weights.shape[-1]):
        z = box.lo[axis] + k - top
        if z:
            found[..., abs(z) - 1] += np.sign(z) * weights[..., k]
    return box.with_axis(axis, top + 1, hi), found


def apart(updates: Sequence[Update]) -> list[Stage]:
    """The fewest stages in which no updates overlap."""
    groups = list[list[Update]]()
    for update in updates:
        group = next((g for g in groups if not any(update.box.overlaps(other.box) for other in g)), None)
        if group is None:
            groups.append([update])
        else:
            group.append(update)
    return [Stage(tuple(group)) for group in groups]
