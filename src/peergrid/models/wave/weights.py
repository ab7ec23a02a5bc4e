"""Weights of finite differences of any even order on regular grids, and their accuracy.

Method: Fornberg, Mathematics of Computation 51 (1988) 699.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sqrt

import numpy as np

from peergrid.models.waveforms import Doubles


def fornberg(nodes: Sequence[float], derivative: int) -> Doubles:
    """The weights of values at `nodes` in a derivative at 0, exact for polynomials of degree below their number."""
    count = len(nodes)
    weights = np.zeros((derivative + 1, count))
    weights[0, 0] = 1.0
    one, here = 1.0, nodes[0]
    for i in range(1, count):
        two, before, here = 1.0, here, nodes[i]
        for j in range(i):
            three = nodes[i] - nodes[j]
            two *= three
            if j == i - 1:
                for k in range(min(i, derivative), 0, -1):
                    weights[k, i] = one * (k * weights[k - 1, i - 1] - before * weights[k, i - 1]) / two
                weights[0, i] = -one * before * weights[0, i - 1] / two
            for k in range(min(i, derivative), 0, -1):
                weights[k, j] = (here * weights[k, j] - k * weights[k - 1, j]) / three
            weights[0, j] = here * weights[0, j] / three
        one = two
    found: Doubles = weights[derivative]
    return found


def second(order: int) -> tuple[float, ...]:
    """The second derivative at a node: the weight of the node, then of those 1, 2, … cells away on each side."""
    reach = order // 2
    found = fornberg([float(n) for n in range(-reach, reach + 1)], 2)
    return tuple(float(w) for w in found[reach:])


def first(order: int) -> tuple[float, ...]:
    """The first derivative at a node: the weights of nodes 1, 2, … cells ahead; those behind have the other sign."""
    reach = order // 2
    found = fornberg([float(n) for n in range(-reach, reach + 1)], 1)
    return tuple(float(w) for w in found[reach + 1 :])


def staggered(order: int) -> tuple[float, ...]:
    """The first derivative half way between nodes: the weights of those 1/2, 3/2, … cells ahead."""
    reach = order // 2
    found = fornberg([n + 0.5 for n in range(-reach, reach)], 1)
    return tuple(float(w) for w in found[reach:])


def second_symbol(order: int, angle: float) -> float:
    """The factor by which minus the second derivative multiplies a wave of `angle` radians a cell; near angle²."""
    weights = second(order)
    return -weights[0] - 2 * sum(w * cos(k * angle) for k, w in enumerate(weights[1:], 1))


def slowdown(order: int, cells: float) -> float:
    """The share by which a wave with `cells` cells per wavelength runs too slowly along an axis."""
    angle = 2 * pi / cells
    return 1 - sqrt(max(0.0, second_symbol(order, angle))) / angle
