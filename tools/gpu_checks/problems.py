"""The problems that are checked; small ones are made once in each process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@cache
def relaxed(rows: int, columns: int, boundary: Any = "fixed") -> Any:
    """Jacobi's step."""
    from peergrid import Grid, Problem, stencil
    from peergrid.bench.problems import noise

    @stencil
    def relax(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))

    grid = Grid((rows, columns), boundary=boundary)
    return Problem.of(relax(grid.field("u", noise(grid.shape, 1))))


@cache
def cube(shape: tuple[int, int, int]) -> Any:
    """Heat in three dimensions, every kind of edge."""
    from peergrid import Grid, Problem, stencil
    from peergrid.bench.problems import noise

    @stencil
    def heat(u, k):  # type: ignore[no-untyped-def]
        around = (u[-1, 0, 0] + u[1, 0, 0]) + (u[0, -1, 0] + u[0, 1, 0]) + (u[0, 0, -1] + u[0, 0, 1])
        u.next[0, 0, 0] = u[0, 0, 0] + k * (around - 6 * u[0, 0, 0])

    grid = Grid(shape, boundary=("fixed", "periodic", "reflecting"))
    return Problem.of(heat(grid.field("u", noise(shape, 2)), 0.1))


@cache
def radius_four(rows: int, columns: int) -> Any:
    """A cross that reaches four cells far, across seams that wrap."""
    from peergrid import Grid, Problem, stencil
    from peergrid.bench.problems import noise

    @stencil
    def wide(u):  # type: ignore[no-untyped-def]
        total = 0.2 * u[0, 0]
        for n in range(1, 5):
            total = total + 0.05 * ((u[-n, 0] + u[n, 0]) + (u[0, -n] + u[0, n]))
        u.next[0, 0] = total

    grid = Grid((rows, columns), boundary="periodic")
    return Problem.of(wide(grid.field("u", noise(grid.shape, 3))))


@cache
def reduced(*shape: int) -> Any:
    """Waves that reflect, and reductions: of a box, of neighbours, of the change of a step."""
    from peergrid import Box, Grid, Problem, reduction, stencil
    from peergrid.bench.problems import noise

    here, ahead = (0,) * len(shape), (*(0,) * (len(shape) - 1), 1)

    @stencil
    def drift(u):  # type: ignore[no-untyped-def]
        u.next[here] = 0.5 * u[here] + 0.3 * u[ahead]

    @reduction("sum", every=5)
    def energy(u):  # type: ignore[no-untyped-def]
        return u[here] * u[here]

    @reduction("max", every=3)
    def slope(u):  # type: ignore[no-untyped-def]
        return abs(u[ahead] - u[here])

    @reduction("l2", every=4)
    def change(u):  # type: ignore[no-untyped-def]
        return u[here] - u.prev[here]

    u = Grid(shape, "reflecting").field("u", noise(shape, 5))
    part = Box(tuple(n // 5 for n in shape), tuple(n - n // 7 for n in shape))
    return Problem.of(drift(u), reductions=[energy(u), slope(u), change(u).within(part)])


@cache
def radar(nx: int, ny: int, steps: int) -> Any:
    """Radar over sand, with absorbers, a source and a receiver."""
    from peergrid.bench.problems import radar as shipped

    return shipped(nx, ny, steps)


@cache
def example() -> Any:
    """The radar of `examples/gpr.toml`, from noise."""
    from peergrid.bench.problems import noisy
    from peergrid.models.fdtd.build import build
    from peergrid.models.modelfile import read

    return noisy(build(read(ROOT / "examples" / "gpr.toml")).problem)


@cache
def radar3d(nx: int, ny: int, nz: int, steps: int, lit: bool = False) -> Any:
    """Radar in three dimensions: wet soil, absorbers on all sides and a dipole.

    lit: with plane waves instead, one aslant, one that meets the soil, and a thin wire that a coaxial line feeds.
    """
    import numpy as np

    from peergrid.models import fdtd3d
    from peergrid.models.waveforms import Ricker

    ids = np.zeros((6, nx + 1, ny + 1, nz + 1), np.uint8)
    ids[:3, :, :, : nz // 3] = 1
    drive, spacing, middle = fdtd3d.Drive(Ricker(4e9)), 0.002, (nx // 2, ny // 2, nz // 2)
    polarisation = 0.0, 0.2**0.5, 2 * 0.2**0.5
    wave = fdtd3d.PlaneWave((8, 8, middle[2] - 2), (nx - 8, ny - 8, nz - 8), (1, 2, -1), polarisation, drive)
    dipole = fdtd3d.ElectricDipole("y", (*middle[:2], middle[2] - 2), drive)
    met = fdtd3d.PlaneWave((9, 9, 7), (nx - 9, ny - 9, nz - 7), (0, 0, -1), (0.6, 0.8, 0.0), drive, None)
    feed = fdtd3d.CoaxialFeed("z", middle, drive, 50.0)
    if lit:
        ids[:2, *middle] = 2
    domain = fdtd3d.Domain(
        (nx, ny, nz), (spacing,) * 3, dt=0.57 * spacing / 299_792_458, steps=steps,
        media=(fdtd3d.VACUUM, fdtd3d.Medium("wet", 4.0, 0.01, poles=(fdtd3d.debye(2.0, 1e-11),)),
               *(fdtd3d.PEC,) * lit), ids=ids,
        absorber=fdtd3d.Absorber(tuple((side, fdtd3d.Slab(5)) for side in fdtd3d.SIDES)),
        sources=(wave, met, feed) if lit else (dipole,), wires=(fdtd3d.Wire("z", middle, 3, 0.0004),) if lit else (),
    )  # fmt: skip
    return fdtd3d.build(domain).problem


@cache
def shot(nx: int, ny: int, nz: int) -> Any:
    """A seismic shot of second order: a source and receivers between nodes, on both sides of where two devices meet."""
    import numpy as np

    from peergrid.bench.problems import noise
    from peergrid.models.wave import Medium, Propagator, Scheme

    waves = Propagator(Medium((nx, ny, nz), 10.0, 2000 + 500 * noise((nx, ny, nz), 5)), Scheme(order=2, layer=2))
    places = [[10 * (nx // 2 + step) + 3.0, 5.0 * ny + 2.0, 5.0 * nz + 1.0] for step in (-3, -1, 0, 2)]
    return waves.problem(np.array(places[:1]), np.ones((1, 40)), np.array(places))[0]


CHECKED: dict[str, Callable[[], Any]] = {
    "gpr": example,
    "jacobi": lambda: relaxed(700, 1000),
    "heat3d": lambda: cube((96, 80, 72)),
    "radius4": lambda: radius_four(600, 1100),
    "radar3d": lambda: radar3d(200, 24, 28, 40),
    "shot3d": lambda: shot(180, 24, 22),
    "waves3d": lambda: radar3d(90, 24, 28, 24, lit=True),
    "reduced": lambda: reduced(300, 2100),
    "reduced1d": lambda: reduced(90_000),
    "reduced3d": lambda: reduced(40, 30, 140),
    "norms": lambda: relaxed(710, 1000, ("periodic", "fixed")),
    "radar-norms": lambda: radar(400, 500, 30),
}
"""What the matrix of `bits` consists of."""

NORMED = {"norms": "u", "radar-norms": "Ez"}
"""The field the norms of whose change belong to a problem's digest."""
