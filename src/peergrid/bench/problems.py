"""The problems that are measured. Fields start from noise: zeros would flatter the hardware, which they cost less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from peergrid.grid import Array, Dtype, Grid
from peergrid.models import parse
from peergrid.stencil import Problem, stencil

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

PATTERN = 1 << 20  # numbers after which noise repeats


def noise(shape: Sequence[int], seed: int, dtype: Dtype = "float32") -> Array:
    """Random numbers in [-0.5, 0.5), of single precision in whatever type."""
    count = int(np.prod(shape))
    pattern = np.random.default_rng(seed).random(min(count, PATTERN), np.float32) - np.float32(0.5)
    return np.resize(pattern, tuple(shape)).astype(dtype, copy=False)


def noisy(problem: Problem) -> Problem:
    """The problem with noise in the fields that change."""
    fields = {
        name: replace(field, init=noise(field.box.shape, seed, field.grid.dtype)) if name in problem.state else field
        for seed, (name, field) in enumerate(problem.fields.items())
    }
    return replace(problem, fields=MappingProxyType(fields))


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
    values = noise(grid.shape, 1)
    values[:, 0] = values[:, -1] = np.sin(2 * np.pi * np.arange(1, rows + 1) / (rows + 1))
    return Problem.of(relax(grid.field("u", values)))


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
