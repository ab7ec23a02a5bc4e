"""Random fields with a fractal spectrum on boxes of cells and on their faces, the same for the same seed.

White noise is divided by a power of the wavenumber, the fractal dimension (D. L. Turcotte, Fractals and Chaos in
Geology and Geophysics, 1997). Wavenumbers, precisions and generators are those of gprMax: its models are reproduced
cell by cell.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Dtype
from peergrid.models.waveforms import Doubles

Bins = NDArray[np.intp]


def bins(shape: tuple[int, int, int], dimension: float, weights: Doubles, count: int, seed: int, dtype: Dtype) -> Bins:
    """The number, from 0 to before `count`, of the class of each cell of a box.

    weights: of the wavenumbers along the axes, which are otherwise those of a cube.
    """
    sides = np.array(shape, np.float64)
    shortest = min(n for n in shape if n > 1) if max(shape) > 1 else 1
    scaled = np.where(sides == 1, 1.0, shortest / sides)
    values = _field(shape, dimension, weights * scaled, seed, dtype)
    limits = np.linspace(np.amin(values), np.amax(values), count)
    found: Bins = np.digitize(values, limits, right=True)
    return np.minimum(found, count - 1)


def heights(
    shape: tuple[int, int], dimension: float, weights: Doubles, low: float, high: float, seed: int, dtype: Dtype
) -> Doubles:
    """Heights from `low` to `high` on a face of cells."""
    values = _field(shape, dimension, weights, seed, dtype)
    least, most = np.amin(values), np.amax(values)
    slope = (np.float64(high) - low) / (most - least) if most > least else np.float64(0)
    found: Doubles = values * slope + low - slope * least
    return found


def chances(shape: tuple[int, int], dimension: float, seed: int, dtype: Dtype) -> NDArray[np.floating]:
    """The cumulative probability of a position on a face, row by row."""
    values = _field(shape, dimension, np.ones(2), seed, dtype)
    least, most = np.amin(values), np.amax(values)
    slope = 1 / (most - least) if most > least else values.dtype.type(0)
    density = values * slope + 0 - slope * least
    if not density.any():
        density = np.ones_like(density)
    found: NDArray[np.floating] = np.cumsum(np.ravel(density / np.sum(density)))
    return found


def _field(shape: tuple[int, ...], dimension: float, weights: Doubles, seed: int, dtype: Dtype) -> NDArray[np.floating]:
    noise = np.fft.fftn(np.random.default_rng(seed).standard_normal(shape))
    square = np.zeros((1,) * len(shape))
    for axis, (n, weight) in enumerate(zip(shape, weights, strict=True)):
        places = weight * ((np.arange(n) + n // 2) % n) - weight * n / 2
        square = square + (places**2).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    power = np.sqrt(square) ** float(np.float32(dimension))
    power[power == 0] = 0.9
    noise /= power
    noise.reshape(-1)[0] = 0
    assert noise.size == prod(shape)
    return np.fft.ifftn(noise).real.astype(dtype)
