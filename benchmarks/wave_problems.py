"""Waves in 3D, 8th order in space and 2nd in time, for peergrid and for Devito: the same schemes from the same noise.

peergrid updates the cells within a frame of zeros four cells wide, as Devito's halo is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid import Grid, Problem, stencil

RADIUS = 4
SECOND = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)  # weights of the second derivative
FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # of the first, from the cell before and after on
AXIS = ("nx", "ny", "nz")  # of symmetry: the components of a unit vector

Values = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Waves:
    """A problem for both programs.

    bytes: per cell and step, of the fields that must be read and written; values: what each field starts from, or what
    it is, on so many cells; devito: Python that makes an `operator` from the `grid` and the `values`, with the fields
    `waves` that start from noise.
    """

    name: str
    bytes: int
    values: Callable[[int], Values]
    problem: Callable[[Values], Problem]
    waves: tuple[str, ...]
    devito: str


@stencil
def acoustic(u: Any, c: Any, weights: Any) -> None:
    """One step in time; `c` holds the squares of velocity, time step and spacing as one number."""
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c[0, 0, 0] * _laplacian(u, weights)


@stencil
def along_axis(p: Any, q: Any, gp: Any, gq: Any, x: Any, y: Any, z: Any, weights: Any) -> None:
    """The derivatives along the axis of symmetry."""
    for g, f in ((gp, p), (gq, q)):
        g.next[0, 0, 0] = _along((f, f, f), (x, y, z), weights)


@stencil
def tilted(
    p: Any, q: Any, gp: Any, gq: Any, x: Any, y: Any, z: Any, m: Any, a: Any, b: Any, first: Any, second: Any
) -> None:
    """One step in time of pressure and auxiliary wave; `a` and `b` stand for Thomsen's parameters."""
    hp, hq = (_along((g, g, g), (x, y, z), first) for g in (gp, gq))
    c = (0, 0, 0)
    across = _laplacian(p, second) - hp
    p.next[c] = 2 * p[c] - p.prev[c] + m[c] * (a[c] * across + b[c] * hq)
    q.next[c] = 2 * q[c] - q.prev[c] + m[c] * (b[c] * across + hq)


def _laplacian(u: Any, weights: Any) -> Any:
    around = 3 * weights[0] * u[0, 0, 0]
    for r in range(1, RADIUS + 1):
        along_x, along_y, along_z = u[-r, 0, 0] + u[r, 0, 0], u[0, -r, 0] + u[0, r, 0], u[0, 0, -r] + u[0, 0, r]
        around = around + weights[r] * (along_x + along_y + along_z)
    return around


def _along(fields: tuple[Any, ...], axis: tuple[Any, ...], weights: Any) -> Any:
    """The derivative in the direction of the unit vector `axis`."""
    found: Any = None
    for place, (f, component) in enumerate(zip(fields, axis, strict=True)):
        terms = [weights[r - 1] * (f[_step(place, r)] - f[_step(place, -r)]) for r in range(1, RADIUS + 1)]
        part = component[0, 0, 0] * (terms[0] + terms[1] + terms[2] + terms[3])
        found = part if found is None else found + part
    return found


def _step(place: int, distance: int) -> tuple[int, ...]:
    return tuple(distance if axis == place else 0 for axis in range(3))


def _noise(cells: int, names: str, low: float, width: float, seed: int) -> dict[str, NDArray[np.float32]]:
    numbers = np.random.default_rng(seed)
    return {n: np.float32(low) + np.float32(width) * numbers.random((cells,) * 3, dtype=np.float32) for n in names}


def _acoustic_values(cells: int) -> Values:
    return {**_noise(cells, "u", -0.5, 1.0, 2), **_noise(cells, "c", 0.02, 0.05, 3)}


def _tilted_values(cells: int) -> Values:
    """Angles that vary slowly, as they do in the ground; stable parameters."""
    line = np.linspace(0, 3, cells, dtype=np.float32)
    tilt, turn = 0.3 + 0.1 * line[:, None, None] + 0 * line[None, :, None], 0.2 * line[None, :, None]
    direction = np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt) + 0 * turn
    axis = {
        name: np.ascontiguousarray(np.broadcast_to(v, (cells,) * 3)) for name, v in zip(AXIS, direction, strict=True)
    }
    waves, speed = _noise(cells, "pq", -0.5, 1.0, 2), _noise(cells, "m", 0.02, 0.03, 3)
    return {**waves, **axis, **speed, **_noise(cells, "a", 1.2, 0.1, 4), **_noise(cells, "b", 1.05, 0.05, 5)}


def _framed(values: Values) -> dict[str, Any]:
    shape = next(iter(values.values())).shape
    grid = Grid(tuple(n + 2 * RADIUS for n in shape))
    return {name: grid.field(name, np.pad(array, RADIUS)) for name, array in values.items()}


def _acoustic_problem(values: Values) -> Problem:
    return Problem.of(acoustic(*_framed(values).values(), SECOND))


def _tilted_problem(values: Values) -> Problem:
    made = _framed(values)
    grid = Grid(made["p"].box.shape)
    waves, derived = [made[n] for n in "pq"], [grid.field(n) for n in ("gp", "gq")]
    axis, rest = [made[n] for n in AXIS], [made[n] for n in "mab"]
    return Problem.of(
        [along_axis(*waves, *derived, *axis, FIRST), tilted(*waves, *derived, *axis, *rest, FIRST, SECOND)]
    )


ACOUSTIC = Waves(
    "acoustic", 16, _acoustic_values, _acoustic_problem, ("u",),
    """
u, c = wave("u"), given("c")
operator = Operator([Eq(u.forward, 2 * u - u.backward + c * u.laplace)], opt="advanced")
waves = [u]
""",
)  # fmt: skip
TILTED = Waves(
    "tti", 48, _tilted_values, _tilted_problem, ("p", "q"),
    """
p, q = wave("p"), wave("q")
nx, ny, nz, m, a, b = (given(name, 8) for name in ("nx", "ny", "nz", "m", "a", "b"))
def along(f):
    return nx * f.dx + ny * f.dy + nz * f.dz
def again(f):
    g = along(f)
    return nx * g.dx + ny * g.dy + nz * g.dz
hp, hq = again(p), again(q)
across = p.laplace - hp
operator = Operator(
    [Eq(p.forward, 2 * p - p.backward + m * (a * across + b * hq)),
     Eq(q.forward, 2 * q - q.backward + m * (b * across + hq))], opt="advanced")
waves = [p, q]
""",
)  # fmt: skip
CASES = {case.name: case for case in (ACOUSTIC, TILTED)}
