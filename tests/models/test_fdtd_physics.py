"""The radar against physics. Each test states its formula and where its tolerance comes from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fdtd_examples import PULSE, SHORTEST, WALLS, free_space, line_source, relative_error
from fdtd_stepper import Stepper

from peergrid.grid import Array, Dtype
from peergrid.models.fdtd import Built, build
from peergrid.models.fdtd.constants import EPSILON_0, ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import VACUUM, Material
from peergrid.models.fdtd.model import (
    Absorber,
    Component,
    Direction,
    GridSpec,
    LineSource,
    PlaneWave,
    RadarModel,
    ReceiverSpec,
)
from peergrid.models.fdtd.shapes import Box, Cylinder, Polygon, Shape
from peergrid.models.waveforms import Gaussian, Ricker

WINDOW = 3 / PULSE.frequency + SHORTEST / SPEED_OF_LIGHT


def line_source_error(
    cells: tuple[float, float],
    direction: tuple[float, float],
    medium: Material = VACUUM,
    field: Component = "Ez",
) -> float:
    """The relative L2 error of a trace one shortest wavelength (along each axis named) from a line source."""
    receiver = ReceiverSpec((direction[0] * SHORTEST, direction[1] * SHORTEST), "rx", (field,))
    built = build(free_space(cells, [receiver], WINDOW, None if medium == VACUUM else medium))
    trace = Stepper(built.problem).run(built.steps).traces()[f"rx.{field}"] * built.units[field]
    half = 0.5 if field == "Hy" else 0.0
    offset = np.subtract(built.recorders[0].cell, built.emitters[0].cell) + np.array([half, 0.0])
    distance = float(np.hypot(*(offset * built.geometry.spacing)))
    times = (np.arange(built.steps) + 1 - half) * built.dt
    return relative_error(trace, line_source(times, distance, medium, field))


@pytest.mark.parametrize(
    ("cells", "direction", "field"),
    [
        ((20, 20), (1, 0), "Ez"),
        ((20, 20), (0, -1), "Ez"),
        ((20, 20), (-1, 1), "Ez"),
        ((20, 32), (1, 1), "Ez"),
        ((20, 20), (1, 0), "Hy"),
        ((32, 20), (1, 0), "Hy"),
    ],
)
def test_line_source_in_free_space_is_the_hankel_function(
    cells: tuple[float, float], direction: tuple[float, float], field: Component
) -> None:
    """Ez = -ω μ I H₀⁽²⁾(kr) / 4. Tolerance: along an axis Yee's phase speed is low by (π/N)²/6 (1 - S²), 0.2 % at
    N = 20 cells; after one shortest wavelength that is 1.3 % of the shortest wave, which carries 1 % of the amplitude,
    and 7.6 times less where the spectrum peaks (2.75 times longer). So 1 % is held with room; about 0.2 % is seen.
    """
    assert line_source_error(cells, direction, field=field) < 0.01


def test_line_source_in_a_lossy_medium_is_the_hankel_function_of_a_complex_wavenumber() -> None:
    """k² = ω² μ ε (1 - jσ/ωε); tolerance as in vacuum, cells counted in the medium (20 for a slowness of 1.5)."""
    medium = Material("wet", permittivity=1.5, conductivity=0.05, permeability=1.5)
    assert line_source_error((30, 30), (1, 0), medium) < 0.01


def test_line_source_converges_with_order_two() -> None:
    """Yee's scheme is of second order in space and time at a fixed Courant number. 2.0 ± 0.1 is asked for; the next
    (fourth-order) term bends the line by about 0.02 on these grids.
    """
    counts = np.array([10, 14, 20, 28])
    errors = [line_source_error((n, n), (1, 0)) for n in counts]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order == pytest.approx(2.0, abs=0.1)


def closed_box(size: tuple[float, float], spacing: tuple[float, float]) -> Built:
    return build(RadarModel(GridSpec(size, spacing, steps=1, dtype="float64"), absorber=WALLS))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 2), (7, 1)])
def test_modes_of_a_closed_box(m: int, n: int) -> None:
    """Ez = sin(mπx/a) sin(nπy/b) cos(ωt) with sin²(ωdt/2) = (c dt)² (sin²(k_x dx/2)/dx² + sin²(k_y dy/2)/dy²), exactly;
    with H = 0 half a step before the start, Ez after p steps is cos((p + ½) ω dt) / cos(½ ω dt) of the first.
    Tolerance: rounding, 2⁻⁵³ for each of some ten operations in each of 500 steps.
    The frequency itself is that of the continuous box, c/2 √((m/a)² + (n/b)²), but for (k dx)²/24, at most 0.9 % here.
    """
    built = closed_box((1.0, 0.6), (0.02, 0.015))
    (nx, ny), (dx, dy) = built.geometry.cells.shape, built.geometry.spacing
    kx, ky = m * np.pi / 1.0, n * np.pi / 0.6
    mode = np.outer(np.sin(kx * dx * np.arange(nx + 1)), np.sin(ky * dy * np.arange(ny + 1)))
    c_dt = SPEED_OF_LIGHT * built.dt
    half = np.arcsin(c_dt * np.hypot(np.sin(kx * dx / 2) / dx, np.sin(ky * dy / 2) / dy))
    steps = 500
    found = Stepper(built.problem, {"Ez": mode}).run(steps).arrays["Ez"]
    exact = mode * np.cos((2 * steps + 1) * half) / np.cos(half)
    np.testing.assert_allclose(found, exact, atol=10 * steps * 2**-53)
    assert 2 * half / built.dt == pytest.approx(SPEED_OF_LIGHT * np.hypot(kx, ky), rel=0.009)


def test_energy_in_a_lossless_closed_box_is_kept() -> None:
    """Σ E² / cb + Σ H⁺ H⁻ / ch is the same at every step, H⁺ and H⁻ half a step after and before E: the scheme's
    own energy, for any fields, materials and perfect conductors. Tolerance: rounding, random over 1000 steps.
    """
    model = RadarModel(
        GridSpec((0.8, 0.6), 0.02, steps=1, dtype="float64"),
        materials=(Material("stone", 5.0), Material("ferrite", 2.0, 0.0, 3.0)),
        shapes=(
            Box("stone", (0.1, 0.1), (0.4, 0.3)),
            Cylinder("ferrite", (0.5, 0.4), 0.1),
            Cylinder("conductor", (0.3, 0.4), 0.06),
        ),
        absorber=WALLS,
    )
    problem = build(model).problem
    stepper = Stepper(problem)
    a = stepper.arrays
    gain = a["cb"][1:-1, 1:-1]
    a["Ez"][1:-1, 1:-1] = np.random.default_rng(5).standard_normal(gain.shape) * (gain > 0)

    def energy() -> float:
        electric = np.sum(a["Ez"][1:-1, 1:-1][gain > 0] ** 2 / gain[gain > 0])
        hx, hy = a["Hx"].copy(), a["Hy"].copy()
        stepper.run(1)
        return float(electric + np.sum(hx * a["Hx"] / a["ch_x"]) + np.sum(hy * a["Hy"] / a["ch_y"]))

    energies = np.array([energy() for _ in range(1000)])
    assert energies[0] > 0
    np.testing.assert_allclose(energies, energies[0], rtol=1e-12)


def wave_tube(medium: Material, interface: float, steps: int) -> RadarModel:
    """A plane wave along +x in a strip, periodic along y, onto a half space; receivers on both sides of it."""
    return RadarModel(
        GridSpec((6.0, 0.04), 0.01, steps=steps, dtype="float64", periodic=("y",)),
        materials=(medium,),
        shapes=(Box(medium.name, (interface, -1.0), (9.0, 1.0)),),
        sources=(PlaneWave("+x", 1.0, Ricker(3e8)),),
        receivers=(ReceiverSpec((0.5, 0.02), "echo"), ReceiverSpec((1.5, 0.02), "incident")),
    )


def spectrum_at(trace: Array, dt: float, frequencies: Array) -> Array:
    times = np.arange(len(trace)) * dt
    return np.exp(-2j * np.pi * np.outer(frequencies, times)) @ trace


@pytest.mark.parametrize(
    "medium",
    [
        Material("sand", 4.0),
        Material("ferrite", 1.0, 0.0, 4.0),
        Material("clay", 6.0, 0.05),
        Material("both", 6.0, 0.0, 1.5),
    ],
    ids=lambda m: m.name,
)
def test_reflection_at_a_half_space_is_fresnels(medium: Material) -> None:
    """R = (η - η₀) / (η + η₀), η = √(jωμ / (σ + jωε)), for the frequencies where the pulse has half its peak.
    Tolerance: 1 % of R; the scheme's own interface, half a cell of each medium, errs by (k dx)² / 8 in order of
    magnitude, 0.6 % at the 28 cells of the shortest wavelength here.
    """
    tube = wave_tube(medium, interface=2.0, steps=1300)
    built = build(tube)
    echo = Stepper(built.problem).run(1300).traces()["echo.Ez"]
    clear = Stepper(build(replace(tube, shapes=())).problem).run(1300).traces()["incident.Ez"]
    frequencies = np.linspace(2e8, 4e8, 9)
    omega = 2 * np.pi * frequencies
    impedance = ETA_0 * np.sqrt(
        1j * omega * medium.permeability / (medium.conductivity / EPSILON_0 + 1j * omega * medium.permittivity)
    )
    exact = (impedance - ETA_0) / (impedance + ETA_0)
    found = spectrum_at(echo, built.dt, frequencies) / spectrum_at(clear, built.dt, frequencies)
    found *= np.exp(1j * grid_wavenumber(omega, 0.01, built.dt) * 2.0)  # the echo's way is 2.5 m, the other's 0.5 m
    np.testing.assert_allclose(found, exact, atol=0.01 * float(np.abs(exact).max()))


def grid_wavenumber(omega: Array, dx: float, dt: float) -> Array:
    """The wavenumber along an axis of the vacuum grid: sin(k dx / 2) = dx sin(ω dt / 2) / (c dt)."""
    wavenumber: Array = 2 / dx * np.arcsin(dx / (SPEED_OF_LIGHT * dt) * np.sin(omega * dt / 2))
    return wavenumber


@pytest.mark.parametrize("medium", [VACUUM, Material("glass", 2.0, 0.0, 1.2)], ids=lambda m: m.name)
@pytest.mark.parametrize("direction", ["+x", "-x", "+y", "-y"])
def test_nothing_of_a_plane_wave_leaks_behind_its_sheet(direction: Direction, medium: Material) -> None:
    """Both sheets follow the grid's own wave: the field behind is zero but for rounding (1e-13 of the wave) until the
    absorber's echo comes back, 1 m or 113 steps later.
    """
    along_x = direction[1] == "x"
    size, spacing = ((1.0, 0.06), (0.01, 0.02)) if along_x else ((0.06, 1.0), (0.02, 0.01))
    spots = {"low": (0.3, 0.03) if along_x else (0.03, 0.3), "high": (0.7, 0.03) if along_x else (0.03, 0.7)}
    model = RadarModel(
        GridSpec(
            size, spacing, steps=110, dtype="float64", background=medium.name, periodic=("y" if along_x else "x",)
        ),
        materials=() if medium == VACUUM else (medium,),
        sources=(PlaneWave(direction, 0.5, Ricker(1e9 / medium.slowness)),),
        receivers=tuple(ReceiverSpec(p, name) for name, p in spots.items()),
    )
    built = build(model)
    traces = Stepper(built.problem).run(110).traces()
    ahead, behind = ("high", "low") if direction[0] == "+" else ("low", "high")
    assert np.abs(traces[f"{ahead}.Ez"]).max() == pytest.approx(1.0, rel=0.02)
    assert np.abs(traces[f"{behind}.Ez"]).max() < 1e-13


def test_a_plane_wave_is_its_waveform_where_it_sets_out() -> None:
    """Ez at `position` is w(t), to the second order of the spacing: half of it has at most a quarter of the error."""
    errors = []
    for cells in (100, 200):
        model = RadarModel(
            GridSpec((1.0, 0.06), (1.0 / cells, 0.02), steps=cells, dtype="float64", periodic=("y",)),
            sources=(PlaneWave("+x", 0.5, Ricker(6e8)),),
            receivers=(ReceiverSpec((0.5, 0.02), "sheet"),),
        )
        built = build(model)
        trace = Stepper(built.problem).run(cells).traces()["sheet.Ez"]
        errors.append(relative_error(trace, Ricker(6e8).sample(np.arange(1, cells + 1) * built.dt)))
    assert errors[0] < 0.01
    assert errors[1] < errors[0] / 3.8


def reflection_in_db(medium: Material, ground: Material, cells: int) -> float:
    """The largest difference between a small and a large model over the largest field, at receivers near the edge."""

    def run(count: int, thickness: int) -> dict[str, Array]:
        spacing, middle = 0.002, count // 2
        near = ((28, 0), (28, 20), (20, 28), (28, -20))
        model = RadarModel(
            GridSpec((count * spacing, count * spacing), spacing, steps=400, dtype="float64", background=medium.name),
            materials=tuple(m for m in (medium, ground) if m != VACUUM),
            shapes=(Box(ground.name, (-9, -9), (9, (middle - 4) * spacing)),),
            sources=(LineSource((middle * spacing, middle * spacing), Gaussian(3e9, derivative=1)),),
            receivers=tuple(ReceiverSpec(((middle + a) * spacing, (middle + b) * spacing)) for a, b in near),
            absorber=Absorber(cells=thickness),
        )
        return Stepper(build(model).problem).run(400).traces()

    small, large = run(80, cells), run(320, 10)
    db = [20 * np.log10(float(np.abs(small[n] - large[n]).max() / np.abs(large[n]).max())) for n in small]
    return max(db)


@pytest.mark.parametrize("ground", [VACUUM, Material("sand", 6.0, 0.003)], ids=["vacuum", "half space"])
def test_ten_cells_of_absorber_reflect_less_than_minus_70_db(ground: Material) -> None:
    """max |Ez - Ez of a domain whose edges are too far to be heard| / max |Ez|, two cells in front of the absorber.
    The tolerance is the goal; -92 dB is seen, -80 dB over ground. Four cells must miss it, so that the test can fail.
    """
    assert reflection_in_db(VACUUM, ground, 10) < -70
    assert reflection_in_db(VACUUM, ground, 4) > -70


def scene(dtype: Dtype, flip: bool = False, swap: bool = False) -> RadarModel:
    """A model without any symmetry; mirrored along x, or with x and y exchanged."""
    width = 0.6

    def at(x: float, y: float) -> tuple[float, float]:
        x = width - x if flip else x
        return (y, x) if swap else (x, y)

    def box(name: str, low: tuple[float, float], high: tuple[float, float]) -> Shape:
        a, b = at(*low), at(*high)
        return Box(name, (min(a[0], b[0]), min(a[1], b[1])), (max(a[0], b[0]), max(a[1], b[1])))

    shapes: tuple[Shape, ...] = (
        box("sand", (-1.0, -1.0), (2.0, 0.304)),
        Polygon("clay", (at(0.1013, 0.1009), at(0.3507, 0.1511), at(0.2003, 0.2753))),
        Cylinder("conductor", at(0.4503, 0.2007), 0.0511),
        box("ferrite", (0.4503, 0.352), (0.5497, 0.4701)),
    )
    return RadarModel(
        GridSpec((0.6, 0.6), 0.008, steps=1, dtype=dtype),
        materials=(Material("sand", 4.3, 0.013), Material("clay", 9.7, 0.11), Material("ferrite", 2.1, 0, 3.1)),
        shapes=shapes,
        sources=(LineSource(at(0.2, 0.36), Ricker(8e8)), LineSource(at(0.304, 0.4), Ricker(7e8, 0.5))),
    )


def fields_of(model: RadarModel, steps: int) -> dict[str, Array]:
    stepper = Stepper(build(replace(model, grid=replace(model.grid, steps=steps))).problem)
    return stepper.run(steps).arrays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mirrored_model_gives_mirrored_fields_to_the_bit(dtype: Dtype) -> None:
    """x → a - x turns Ez into its mirror image and Hy into its negative. Every sum in the scheme pairs mirror images,
    and IEEE addition commutes, so the bits are equal (materials, conductors and absorber included).
    """
    plain, mirrored = fields_of(scene(dtype), 150), fields_of(scene(dtype, flip=True), 150)
    assert np.abs(plain["Ez"]).max() > 1
    np.testing.assert_array_equal(mirrored["Ez"], plain["Ez"][::-1])
    np.testing.assert_array_equal(mirrored["Hx"], plain["Hx"][::-1])
    np.testing.assert_array_equal(mirrored["Hy"][:-1], -plain["Hy"][:-1][::-1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_transposed_model_gives_transposed_fields_to_the_bit(dtype: Dtype) -> None:
    """Exchanging x and y exchanges Hx and -Hy; the curl a - b becomes (-b) - (-a), in IEEE arithmetic the same."""
    plain, transposed = fields_of(scene(dtype), 150), fields_of(scene(dtype, swap=True), 150)
    np.testing.assert_array_equal(transposed["Ez"], plain["Ez"].T)
    np.testing.assert_array_equal(transposed["Hx"], -plain["Hy"].T)
    np.testing.assert_array_equal(transposed["Hy"], -plain["Hx"].T)


def test_a_periodic_axis_has_no_seam() -> None:
    """Everything moved along a periodic axis gives the same fields moved, to the bit, across the edge as anywhere."""

    def fields(shift: int) -> dict[str, Array]:
        step = 0.01
        model = RadarModel(
            GridSpec((0.5, 0.3), step, steps=80, periodic=("y",)),
            materials=(Material("ferrite", 2.1, 0.01, 3.1),),
            shapes=(Cylinder("ferrite", (0.3003, (4 + shift) * step + 0.0007), 0.0304),),
            sources=(LineSource((0.2, (4 + shift) * step), Ricker(8e8)),),
        )
        return fields_of(model, 80)

    here, there = fields(0), fields(14)
    assert np.abs(here["Ez"][:, 25:]).max() > 1, "the wave went around the edge"
    for name in ("Ez", "Hx", "Hy"):
        np.testing.assert_array_equal(np.roll(here[name], 14, axis=1), there[name])
