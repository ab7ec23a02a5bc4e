"""3D problems of many kinds on boxes of any shape: heat, waves, elastic waves, fields, flow, reactions, radar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from problems3d import (
    acoustic_prev,
    along_axis,
    box27,
    electric_uniform,
    heat,
    magnetic,
    moved,
    tti_at_once,
    tti_from_stored,
)
from radar3d import domain

from peergrid.grid import Dtype, Grid, Index
from peergrid.models.fdtd3d import build
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.wave.weights import second
from peergrid.stencil import Problem, stencil

HERE = (0, 0, 0)
HALF = (9 / 8, -1 / 24)  # the first derivative between nodes, 4th order
STRESSES = ("xx", "yy", "zz", "xy", "xz", "yz")
MOVES = [move for move in product((-1, 0, 1), repeat=3) if sum(map(abs, move)) <= 2]
"""The 19 velocities of D3Q19 in cells a step."""
SHARES = {0: 1 / 3, 1: 1 / 18, 2: 1 / 36}  # of a population at rest, by how many axes it moves along


def before(f: Any, axis: int) -> Any:
    """The derivative half a cell before a node."""
    return sum(w * (f[moved(HERE, axis, k)] - f[moved(HERE, axis, -k - 1)]) for k, w in enumerate(HALF))


def behind(f: Any, axis: int) -> Any:
    """The derivative half a cell behind a node."""
    return sum(w * (f[moved(HERE, axis, k + 1)] - f[moved(HERE, axis, -k)]) for k, w in enumerate(HALF))


def around(f: Any) -> Any:
    """The Laplacian, 2nd order."""
    return sum(f[moved(HERE, axis, side)] for axis in range(3) for side in (-1, 1)) - 6 * f[HERE]


@stencil
def velocities(vx: Any, vy: Any, vz: Any, xx: Any, yy: Any, zz: Any, xy: Any, xz: Any, yz: Any, b: float) -> None:
    vx.next[HERE] = vx[HERE] + b * (behind(xx, 0) + before(xy, 1) + before(xz, 2))
    vy.next[HERE] = vy[HERE] + b * (before(xy, 0) + behind(yy, 1) + before(yz, 2))
    vz.next[HERE] = vz[HERE] + b * (before(xz, 0) + before(yz, 1) + behind(zz, 2))


@stencil
def stresses(
    vx: Any, vy: Any, vz: Any, xx: Any, yy: Any, zz: Any, xy: Any, xz: Any, yz: Any, lame: Any, mu: Any
) -> None:
    strains = [before(v, axis) for axis, v in enumerate((vx, vy, vz))]
    for f, strain in zip((xx, yy, zz), strains, strict=True):
        f.next[HERE] = f[HERE] + lame[HERE] * sum(strains) + 2 * mu[HERE] * strain
    xy.next[HERE] = xy[HERE] + mu[HERE] * (behind(vx, 1) + behind(vy, 0))
    xz.next[HERE] = xz[HERE] + mu[HERE] * (behind(vx, 2) + behind(vz, 0))
    yz.next[HERE] = yz[HERE] + mu[HERE] * (behind(vy, 2) + behind(vz, 1))


@stencil
def gray_scott(u: Any, v: Any, feed: float, kill: float) -> None:
    reacted = u[HERE] * v[HERE] * v[HERE]
    u.next[HERE] = u[HERE] + (0.16 * around(u) - reacted + feed * (1 - u[HERE]))
    v.next[HERE] = v[HERE] + (0.08 * around(v) + reacted - (feed + kill) * v[HERE])


@stencil
def burgers(u: Any, v: Any, w: Any, viscosity: float) -> None:
    for f in (u, v, w):
        carried = sum(
            by[HERE] * (f[moved(HERE, axis, 1)] - f[moved(HERE, axis, -1)]) for axis, by in enumerate((u, v, w))
        )
        f.next[HERE] = f[HERE] + viscosity * around(f) - 0.01 * carried


def collide(populations: Sequence[Any]) -> None:
    """D3Q19: each population comes from the cell it left, then relaxes towards equilibrium."""
    come = [f[tuple(-c for c in move)] for f, move in zip(populations, MOVES, strict=True)]
    density = sum(come[1:], come[0])
    speed = [sum(move[a] * c for move, c in zip(MOVES, come, strict=True) if move[a]) / density for a in range(3)]
    square = 1.5 * sum(v * v for v in speed)
    for f, here, move in zip(populations, come, MOVES, strict=True):
        along = 3 * sum(move[a] * speed[a] for a in range(3) if move[a])
        balance = 1 + along + 0.5 * along * along - square
        f.next[HERE] = here + 0.6 * (SHARES[sum(map(abs, move))] * density * balance - here)


@stencil
def d3q19(
    f0: Any, f1: Any, f2: Any, f3: Any, f4: Any, f5: Any, f6: Any, f7: Any, f8: Any, f9: Any, f10: Any, f11: Any,
    f12: Any, f13: Any, f14: Any, f15: Any, f16: Any, f17: Any, f18: Any,
) -> None:  # fmt: skip
    collide((f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18))


def on_fields(step: Any, names: Sequence[str], *rest: float, edge: Any = "fixed", dtype: Dtype = "float32") -> Any:
    """A maker of problems of one update of some fields."""

    def made(shape: Index) -> Problem:
        grid = Grid(shape, edge, dtype)
        return Problem.of(step(*(grid.field(name) for name in names), *rest))

    return made


def acoustic(shape: Index, dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, "fixed", dtype)
    return Problem.of(acoustic_prev(grid.field("u"), grid.field("v2", init=0.1)))


def acoustic_of(order: int, shape: Index) -> Problem:
    """The acoustic wave of some order in space."""
    weights = second(order)

    def step(u: Any, v2: Any) -> None:
        sides = (
            w * (u[moved(HERE, axis, k)] + u[moved(HERE, axis, -k)])
            for axis in range(3)
            for k, w in enumerate(weights[1:], 1)
        )
        u.next[HERE] = 2 * u[HERE] - u.prev[HERE] + v2[HERE] * (3 * weights[0] * u[HERE] + sum(sides))

    grid = Grid(shape)
    return Problem.of(stencil(step)(grid.field("u"), grid.field("v2", init=0.1)))


def yee(shape: Index, edge: Any = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, edge, dtype)
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.4), electric_uniform(*fields, 0.4)])


def tti(stored: bool, shape: Index) -> Problem:
    """stored: whether first derivatives are, in a stage of their own."""
    grid = Grid(shape)
    waves = [grid.field(name) for name in ("p", "q", "p0", "q0")]
    axis = [grid.field(name, init=value) for name, value in (("n0", 0.6), ("n1", 0.48), ("n2", 0.64))]
    rest = [grid.field(name, init=value) for name, value in (("m", 0.05), ("a", 1.2), ("b", 1.05))]
    if not stored:
        return Problem.of(tti_at_once(*waves, axis, *rest))
    first = [grid.field(name) for name in ("gp", "gq")]
    return Problem.of([along_axis(*waves[:2], *first, axis), tti_from_stored(*waves, *first, axis, *rest)])


def elastic(shape: Index) -> Problem:
    """Velocities and stresses of an elastic solid on a staggered grid, 4th order in space."""
    grid = Grid(shape)
    fields = [grid.field(name) for name in ("vx", "vy", "vz", *STRESSES)]
    return Problem.of(
        [velocities(*fields, 0.1), stresses(*fields, grid.field("lame", init=0.2), grid.field("mu", init=0.1))]
    )


def radar(kind: str, shape: Index) -> Problem:
    """A cube with absorbers on all sides."""
    return build(domain(shape[0], kind)).problem


def shot(shape: Index, layer: int = 20, values: dict[str, tuple[float, float]] | None = None, **scheme: Any) -> Problem:
    """A seismic shot; values: the least and the largest of each parameter beside the velocity."""
    made = Scheme(layer=layer, **scheme)
    inside = tuple(n - 2 * (layer + max(4, made.order // 2)) for n in shape)
    drawn = np.random.default_rng(1).random(inside[2])
    bounds = {"velocity": (1500.0, 3000.0), **(values or {})}
    parameters = {name: np.broadcast_to(low + (high - low) * drawn, inside) for name, (low, high) in bounds.items()}
    middle = tuple(10.0 * n / 2 for n in inside)
    medium = Medium(inside, 10.0, **parameters)
    return Shot(Propagator(medium, made), [PointSource(middle, Ricker(10.0))], [middle], 10**5).problem


AXES = {"epsilon": (0.1, 0.2), "delta": (0.0, 0.1)}
KINDS: dict[str, Callable[[Index], Problem]] = {
    "heat": on_fields(heat, "u", 0.1),
    "heat float64": on_fields(heat, "u", 0.1, dtype="float64"),
    "box27": on_fields(box27, "u"),
    "box27 float64": on_fields(box27, "u", dtype="float64"),
    "acoustic": acoustic,
    "acoustic float64": partial(acoustic, dtype="float64"),
    "acoustic 4th order": partial(acoustic_of, 4),
    "acoustic 16th order": partial(acoustic_of, 16),
    "yee": yee,
    "yee periodic": partial(yee, edge="periodic"),
    "yee float64": partial(yee, dtype="float64"),
    "tti": partial(tti, True),
    "tti one stage": partial(tti, False),
    "elastic": elastic,
    "gray-scott": on_fields(gray_scott, "uv", 0.035, 0.06, edge="periodic"),
    "burgers": on_fields(burgers, "uvw", 0.1, edge="periodic"),
    "d3q19": on_fields(d3q19, [f"f{n}" for n in range(19)], edge="periodic"),
    "shot": shot,
    "shot vti": partial(shot, values=AXES),
    "shot tti": partial(shot, values={**AXES, "tilt": (0.0, 0.6)}),
    "shot density": partial(shot, values={"density": (1.0, 3.0)}),
    "shot time order 4": partial(shot, time_order=4),
    "shot cpml": partial(shot, layer=10, absorber="cpml"),
    "radar": partial(radar, "layers"),
    "radar lossy": partial(radar, "lossy"),
}
