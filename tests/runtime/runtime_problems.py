"""A handful of problems that between them use everything the language has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from table_problems import layered

from peergrid import Box, Grid, Problem, Receiver, maximum, stencil, where
from peergrid.grid import Boundary, Index


def values(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


@stencil
def heat_2d(u, k):
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@stencil
def heat_3d(u, k):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + k * (around - 6 * u[0, 0, 0])


@stencil
def wide(u):
    u.next[0, 0] = 0.5 * u[0, 0] + 0.1 * (u[-4, 0] + u[4, 0]) + 0.15 * (u[0, -4] + u[0, 4])


@stencil
def upwind(u, speed):
    u.next[0, 0] = u[0, 0] - speed[0, 0] * (u[0, 0] - u[-1, -2])


@stencil
def graded(u, rows, columns):
    u.next[0, 0] = rows[-1, 1] * u[1, 0] + columns[1, 1] * (rows[0, 0] - u[0, -1])


@stencil
def magnetic(ez, hx, hy, c):
    hx.next[0, 0] = hx[0, 0] - c * (ez[0, 1] - ez[0, 0])
    hy.next[0, 0] = hy[0, 0] + c * (ez[1, 0] - ez[0, 0])


@stencil
def electric(ez, hx, hy, ca, c):
    ez.next[0, 0] = ca[0, 0] * ez[0, 0] + c * ((hy[0, 0] - hy[-1, 0]) - (hx[0, 0] - hx[0, -1]))


@stencil
def source(ez, wave):
    ez.next[0, 0] = ez[0, 0] + wave.now


@stencil
def source_3d(u, wave):
    u.next[0, 0, 0] = u[0, 0, 0] + wave.now


@stencil
def damped_3d(u, d):
    u.next[0, 0, 0] = u[0, 0, 0] * d[0, 0, 0]


@stencil
def layer(psi, ez, b):
    psi.next[0, 0] = b[0, 0] * psi[0, 0] + ez[0, 0]
    ez.next[0, 0] = where(psi[0, 0] > 0.5, maximum(ez[0, 0] - psi[0, 0], -1.0), ez[0, 0])


@stencil
def wave_1d(u, c):
    u.next[0] = 2 * u[0] - u.prev[0] + c * (u[-1] - 2 * u[0] + u[1])


@stencil
def wave_2d(u, c):
    u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + c * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@stencil
def slope(g, u):
    g.next[0, 0] = u[1, 1] - u[-1, -1]


def random_heat(shape: Index, boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Heat in single precision, for any plane."""
    grid = Grid(shape, boundary)
    return Problem.of(heat_2d(grid.field("u", np.random.default_rng(1).random(shape, np.float32)), 0.2))


def heat_fixed() -> Problem:
    grid = Grid((23, 17))
    return Problem.of(heat_2d(grid.field("u", values(grid.shape)), 0.2), [Receiver("r", "u", (11, 3))])


def heat_periodic() -> Problem:
    grid = Grid((14, 19), boundary="periodic", dtype="float64")
    return Problem.of(heat_2d(grid.field("u", values(grid.shape)), 0.2))


def heat_reflecting() -> Problem:
    grid = Grid((13, 16), boundary="reflecting")
    return Problem.of(heat_2d(grid.field("u", values(grid.shape)), 0.2))


def heat_cube() -> Problem:
    grid = Grid((11, 10, 9), boundary=("fixed", "periodic", "reflecting"))
    return Problem.of(heat_3d(grid.field("u", values(grid.shape)), 0.1))


def radius_four_on(shape: Index, boundary: Boundary | tuple[Boundary, ...]) -> Problem:
    grid = Grid(shape, boundary=boundary)
    return Problem.of(wide(grid.field("u", values(grid.shape))))


def radius_four() -> Problem:
    return radius_four_on((37, 24), ("periodic", "fixed"))


def yee_on(shape: Index, boundary: Boundary | tuple[Boundary, ...]) -> Problem:
    """Yee's scheme alone."""
    grid = Grid(shape, boundary=boundary)
    ez, hx, hy, ca = (grid.field(name, values(grid.shape, i)) for i, name in enumerate(("ez", "hx", "hy", "ca")))
    return Problem.of([magnetic(ez, hx, hy, 0.5), electric(ez, hx, hy, ca, 0.5)])


def one_sided() -> Problem:
    grid = Grid((19, 15), boundary=("fixed", "periodic"))
    return Problem.of(upwind(grid.field("u", values(grid.shape)), grid.profile("speed", 1, values((15,), 2))))


def between_profiles() -> Problem:
    """A profile along each axis, read beside its cell along both."""
    grid = Grid((17, 20), boundary=("reflecting", "fixed"))
    rows, columns = grid.profile("rows", 0, values((17,), 2)), grid.profile("columns", 1, values((20,), 3))
    return Problem.of(graded(grid.field("u", values(grid.shape)), rows, columns))


def yee_with_absorber(shape: tuple[int, int]) -> Problem:
    """Yee's scheme, a layer with memory along one side, a source and two receivers, one of them in the middle."""
    rows, columns = shape
    grid, middle = Grid(shape), (rows // 2, columns // 2)
    side = Box((0, 0), (4, columns))
    ez, hx, hy = (grid.field(name, values(grid.shape, i)) for i, name in enumerate(("ez", "hx", "hy")))
    ca, b = grid.field("ca", values(grid.shape, 9)), grid.profile("b", 0, values((rows,), 5))
    psi = grid.field("psi", 0.0, within=side)
    wave = grid.signal("wave", np.sin(np.arange(9)))
    return Problem.of(
        [
            magnetic(ez, hx, hy, 0.5),
            electric(ez, hx, hy, ca, 0.5),
            layer(psi, ez, b).within(side),
            source(ez, wave).within(Box.cell(middle)),
        ],
        [Receiver("a", "ez", middle), Receiver("b", "hy", (rows - 1, 0))],
    )


def yee() -> Problem:
    return yee_with_absorber((21, 18))


def string() -> Problem:
    grid = Grid(29)
    return Problem.of(wave_1d(grid.field("u", values((29,))), 0.25))


def wave_and_slope() -> Problem:
    """A wave, and a stage that reads its new values beside the cell."""
    grid = Grid((16, 21), boundary=("periodic", "fixed"))
    u = grid.field("u", values(grid.shape))
    return Problem.of([wave_2d(u, 0.2), slope(grid.field("g"), u)], [Receiver("r", "g", (4, 5))])


def slanted() -> Problem:
    """Heat in a box through which a wave goes aslant: signals that differ from cell to cell along all axes, and two."""
    grid, box, face = Grid((11, 10, 13)), Box((2, 1, 3), (9, 8, 12)), Box((2, 3, 0), (10, 4, 13))
    u = grid.field("u", values(grid.shape))
    every = grid.signal("every", values((5, 60), 3), (2, -1, 3), first=0)
    some = grid.signal("some", values((4, 30), 4), (-3, 0, 0), first=29)
    return Problem.of(
        [heat_3d(u, 0.1), source_3d(u, every).within(box), source_3d(u, some).within(face)],
        [Receiver("r", "u", (4, 4, 5))],
    )


def media_line() -> Problem:
    return layered(31, "periodic", "float64")


def media_plane() -> Problem:
    return layered((16, 23), ("periodic", "fixed"))


def media_cube() -> Problem:
    return layered((11, 10, 19), ("fixed", "periodic", "reflecting"))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    make.__name__: make
    for make in (
        heat_fixed, heat_periodic, heat_reflecting, heat_cube, radius_four, one_sided, between_profiles, yee, string,
        wave_and_slope, media_line, media_plane, media_cube,
    )
}  # fmt: skip


def slanted_plane() -> Problem:
    """The same in two dimensions."""
    grid = Grid((29, 26))
    wave = grid.signal("wave", values((5, 100), 3), (3, -1), first=26)
    u = grid.field("u", values(grid.shape))
    return Problem.of([heat_2d(u, 0.1), source(u, wave).within(Box((3, 4), (20, 22)))])


MORE = {**PROBLEMS, "slanted": slanted, "slanted_plane": slanted_plane}
"""With those that few tests run."""
