"""The benchmark problems. Fields start from noise, as hardware computes faster with zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from peergrid.grid import Array, Box, Dtype, Grid, Index
from peergrid.models import parse
from peergrid.stencil import Problem, stencil
from peergrid.stencil.lagged import lagged_fields

RADAR = """
[grid]
size = [{x}, {y}]
spacing = 0.002
steps = {steps}
[[material]]
name = "sand"
permittivity = 6.0
conductivity = 0.003
[[shape]]
kind = "layer"
material = "sand"
bottom = -1.0
top = {top}
[[source]]
kind = "line"
position = [{sx}, {sy}]
waveform = {{ kind = "ricker", frequency = 9e8 }}
[[receiver]]
position = [{rx}, {sy}]
"""

PATTERN = 1 << 20  # numbers in the period of the noise


def noise(shape: Sequence[int], seed: int, dtype: Dtype = "float32") -> Array:
    """Random numbers in [-0.5, 0.5) with the precision of float32, in any type."""
    return np.resize(_pattern(seed), tuple(shape)).astype(dtype, copy=False)


def noise_on(shape: Index, seed: int) -> Callable[[Box], Array]:
    """The same noise as a function of a box, so that no host needs the memory of a whole grid of that shape."""
    columns = shape[-1]

    def values(box: Box) -> Array:
        longer = np.resize(_pattern(seed), PATTERN + box.shape[-1])  # rows that begin anywhere in the pattern
        rows = (slice(lo, hi) for lo, hi in zip(box.lo[:-1], box.hi[:-1], strict=True))
        first = np.arange(np.prod(shape) // columns, dtype=np.int64).reshape(shape[:-1])[tuple(rows)].ravel() * columns
        begins = (first + box.lo[-1]) % PATTERN
        return np.stack([longer[k : k + box.shape[-1]] for k in begins]).reshape(box.shape)

    return values


def _pattern(seed: int) -> Array:
    return np.random.default_rng(seed).random(PATTERN, np.float32) - np.float32(0.5)


def noisy(problem: Problem) -> Problem:
    """The problem with noise in the fields that change: lagged ones begin as the fields that they follow."""
    drawn = {name: _within(field.box, seed) for seed, (name, field) in enumerate(problem.fields.items())}
    lagged = lagged_fields(problem)
    fields = {
        name: replace(field, made_by=drawn[lagged.get(name, name)]) if name in problem.state else field
        for name, field in problem.fields.items()
    }
    return replace(problem, fields=MappingProxyType(fields))


def _within(of: Box, seed: int) -> Callable[[Box], Array]:
    """Noise of a field that has values on one box."""
    values, back = noise_on(of.shape, seed), tuple(-lo for lo in of.lo)
    return lambda box: values(box.shift(back))


@stencil
def relax(u: Any) -> None:
    """Jacobi's step for Laplace's equation."""
    u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))


@lru_cache(maxsize=1)
def jacobi(rows: int, columns: int) -> Problem:
    """Laplace's equation as NVIDIA's multi-gpu-programming-models have it.

    The first and last column hold sin(2π y), rows repeat; float32, noise elsewhere.
    """
    grid = Grid((rows, columns), boundary=("periodic", "fixed"))
    between = noise_on(grid.shape, 1)

    def first(box: Box) -> Array:
        values, ends = between(box), np.sin(2 * np.pi * np.arange(1 + box.lo[0], 1 + box.hi[0]) / (rows + 1))
        for column in {0, columns - 1}.intersection(range(box.lo[1], box.hi[1])):
            values[:, column - box.lo[1]] = ends
        return values

    return Problem.of(relax(grid.field("u", first)))


@lru_cache(maxsize=1)
def radar(rows: int, columns: int, steps: int) -> Problem:
    """A ground-penetrating radar: Yee's scheme, two materials, absorbers on all sides, a source, a receiver."""
    x, y = (rows - 1) * 0.002, (columns - 1) * 0.002
    text = RADAR.format(x=x, y=y, steps=steps, top=0.7 * y, sx=0.4 * x, sy=0.75 * y, rx=0.6 * x)
    return noisy(parse(text).build().problem)


def forget() -> None:
    """Give back the memory of the last problems."""
    jacobi.cache_clear()
    radar.cache_clear()
