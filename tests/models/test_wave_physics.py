"""Seismic waves beside formulas: Green's functions, orders of convergence, head waves, group velocities, stability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import scipy
from wave_examples import EXACT, PULSE, compiled, greens, recorded, shot_of

from peergrid import Simulation
from peergrid.grid import Array
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.wave.scheme import TimeOrder
from peergrid.models.wave.weights import first, second, staggered


def apart(one: Array, two: Array) -> float:
    """The relative L2 norm of a difference."""
    return float(np.linalg.norm(one - two) / np.linalg.norm(two))


def test_weights_are_those_of_the_tables() -> None:
    """Of Fornberg's table 1, order 4 and 8."""
    np.testing.assert_allclose(second(8), (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560), rtol=1e-13)
    np.testing.assert_allclose(first(4), (2 / 3, -1 / 12), rtol=1e-13)
    np.testing.assert_allclose(staggered(4), (9 / 8, -1 / 24), rtol=1e-13)


@pytest.mark.parametrize(("density", "away", "allowed"), [(None, 0.0, 2e-5), (1.0, 0.0, 2e-5), (None, 3.7, 2e-3)])
def test_a_point_source_in_2d_sends_greens_function(density: float | None, away: float, allowed: float) -> None:
    """On nodes to the order of the differences, between nodes to that of the interpolation."""
    medium = Medium((101, 101), 10.0, 2000.0, density)
    here = (500.0 + away, 500.0 - away)
    there = [(here[0] + 250, here[1]), (here[0] - 60, here[1] + 220)]
    gather = recorded(shot_of(medium, here, there, 0.37))
    for trace, position in zip(gather.traces, there, strict=True):
        distance = float(np.hypot(position[0] - here[0], position[1] - here[1]))
        assert apart(trace, greens(gather.times, distance, 2000.0, 2, gather.dt)) < allowed


def test_a_plane_source_sends_greens_function_of_one_dimension() -> None:
    """A source on every node of a line, heard before the waves of its ends come."""
    medium, spacing = Medium((81, 61), 10.0, 2000.0), 10.0
    propagator = Propagator(medium, EXACT)
    sources = [PointSource((spacing * k, 200.0), PULSE) for k in range(1, 80)]
    shot = Shot(propagator, sources, [(400.0, 360.0)], propagator.steps(0.215))  # ends: (390² + 160²)^½ m away
    gather = compiled(shot)
    assert apart(gather.traces[0], greens(gather.times, 160.0, 2000.0, 1, gather.dt) / spacing) < 1e-3


@pytest.mark.parametrize("below", [5.0, 0.2])
def test_a_jump_of_density_reflects_as_by_the_formula(below: float) -> None:
    """R = (Z₂ - Z₁) / (Z₂ + Z₁) where it lies half way between nodes, with errors of second order in the spacing."""
    found, reflected = [], (below - 1) / (below + 1)
    for spacing in (20.0, 10.0):
        density = np.ones((round(1600 / spacing) + 1, round(1400 / spacing) + 1))
        first_below = round(780 / spacing)
        density[:, first_below:] = below
        propagator = Propagator(Medium(density.shape, spacing, 2000.0, density), replace(EXACT, courant=0.4))
        sources = [PointSource((spacing * k, 600.0), PULSE) for k in range(1, density.shape[0] - 1)]
        gather = compiled(Shot(propagator, sources, [(800.0, 660.0)], propagator.steps(0.34)))
        direct, echo = (
            greens(gather.times, way, 2000.0, 1, gather.dt) / spacing
            for way in (60.0, 2 * (first_below - 0.5) * spacing - 1260)
        )
        found.append(apart(gather.traces[0] - direct, reflected * echo))
    assert found[0] < 0.035
    assert np.log2(found[0] / found[1]) == pytest.approx(2, abs=0.1)


def test_a_point_source_in_3d_sends_greens_function() -> None:
    here, there = np.array([403.0, 400.0, 393.0]), np.array([500.0, 510.0, 330.0])
    gather = compiled(shot_of(Medium((41, 41, 41), 20.0, 2000.0), tuple(here), there, 0.29))
    distance = float(np.linalg.norm(there - here))
    assert apart(gather.traces[0], greens(gather.times, distance, 2000.0, 3, gather.dt)) < 3e-3


def test_the_order_of_convergence_in_space_is_8() -> None:
    """Where the shortest waves have ten cells; at six the next term of the error makes the slope 7.7."""
    found = []
    for spacing in (7.5, 6.0):
        half = round(480 / spacing)
        medium = Medium((2 * half + 1,) * 2, spacing, 2000.0)
        gather = compiled(shot_of(medium, (480, 480), (720, 480), 0.345, replace(EXACT, courant=0.5)))
        found.append(apart(gather.traces[0], greens(gather.times, 240.0, 2000.0, 2, gather.dt)))
    assert np.log(found[0] / found[1]) / np.log(7.5 / 6) == pytest.approx(8, abs=0.2)


@pytest.mark.parametrize(("time_order", "density"), [(2, None), (4, None), (4, 1.0)])
def test_the_order_of_convergence_in_time_is_2_or_4(time_order: TimeOrder, density: float | None) -> None:
    found = []
    for courant in (0.8, 0.4):
        medium = Medium((81, 61), 12.0, 2000.0, density)
        scheme = replace(EXACT, order=16, courant=courant, time_order=time_order)
        gather = compiled(shot_of(medium, (360, 360), (600, 360), 0.3, scheme))
        found.append(apart(gather.traces[0], greens(gather.times, 240.0, 2000.0, 2, gather.dt, stepped=False)))
    assert np.log2(found[0] / found[1]) == pytest.approx(time_order, abs=0.1)


def test_head_waves_arrive_when_they_should() -> None:
    """t = x / v₂ + 2 z cos i / v₁, sin i = v₁ / v₂, beyond the distance at which they overtake the direct wave."""
    velocity = np.full((251, 61), 1500.0)
    velocity[:, 30:] = 3000.0
    away = np.array([200.0, *np.arange(1500.0, 2400.0, 100.0)])
    there = np.stack([100 + away, np.full(len(away), 20.0)], axis=1)
    shot = shot_of(Medium(velocity.shape, 10.0, velocity), (100.0, 20.0), there, 1.3, Scheme(layer=25))
    gather = compiled(shot)
    expected = away / 3000 + 2 * 275 * np.cos(np.arcsin(0.5)) / 1500  # the layer begins between two nodes
    expected[0] = away[0] / 1500
    onset = np.array([
        gather.times[np.flatnonzero(np.abs(trace) > 0.02 * np.abs(trace[gather.times < time + 0.2]).max())[0]]
        for trace, time in zip(gather.traces, expected, strict=True)
    ])  # fmt: skip
    late = onset - expected
    print(late)
    assert np.ptp(late[1:]) < 0.004
    assert abs(late[1:] - late[0]).max() < 0.03  # the head wave is smoother: an integral of the direct one


def group_velocity(epsilon: float, delta: float, direction: float) -> float:
    """The P wave's, over that along the axis of symmetry, from Christoffel's equation without shear; radians from it.

    v² = (1 + 2 ε s + √((1 + 2 ε s)² - 8 (ε - δ) s (1 - s))) / 2, s = sin² of the phase angle.
    """
    phase = np.linspace(-np.pi, np.pi, 20001)
    s = np.sin(phase) ** 2
    stretched = 1 + 2 * epsilon * s
    v = np.sqrt((stretched + np.sqrt(stretched**2 - 8 * (epsilon - delta) * s * (1 - s))) / 2)
    slope = np.gradient(v, phase)
    angle = phase + np.arctan2(slope, v)
    order = np.argsort(angle)
    return float(np.interp(direction, angle[order], np.hypot(v, slope)[order]))


def test_tilted_wavefronts_travel_with_the_group_velocity() -> None:
    tilt, epsilon, delta = np.radians(30), 0.25, 0.1
    medium = Medium((141, 141), 20.0, 2000.0, epsilon=epsilon, delta=delta, tilt=tilt)
    angles = np.radians([0, 45, 75, 120, 150])
    rings = [[(1400 + r * np.sin(a), 1400 + r * np.cos(a)) for a in angles] for r in (600.0, 1250.0)]
    propagator = Propagator(medium, Scheme(layer=12))
    shot = Shot(propagator, [PointSource((1400, 1400), Ricker(6.0))], np.concatenate(rings), propagator.steps(1.0))
    traces = scipy.signal.resample(compiled(shot).traces, 16 * shot.steps, axis=1)
    for near, far, angle in zip(traces[: len(angles)], traces[len(angles) :], angles, strict=True):
        delay = (np.correlate(far, near, "full").argmax() - len(near) + 1) * propagator.dt / 16
        assert 650 / delay == pytest.approx(2000 * group_velocity(epsilon, delta, angle - tilt), rel=0.006)


@pytest.mark.parametrize("tilt", [0.0, 10.0, 45.0])
def test_sources_in_elliptical_surroundings_send_no_slow_wave(tilt: float) -> None:
    """Along the axis of symmetry, however it is tilted, waves are those of a medium whose axis is vertical."""
    scheme = Scheme(layer=24, dtype="float64", courant=0.4)

    def along_axis(angle: float, tilt: float | None = None) -> Array:
        medium = Medium((161, 161), 5.0, 2000.0, epsilon=0.2, delta=0.1, tilt=tilt).elliptical([(400.0, 400.0)], 50.0)
        receiver = 400 + 200 * np.sin(angle), 400 + 200 * np.cos(angle)
        propagator = Propagator(medium, scheme)
        shot = Shot(propagator, [PointSource((400, 400), Ricker(20.0))], [receiver], propagator.steps(0.35))
        assert not shot.warnings
        return compiled(shot).traces

    angle = np.radians(tilt)
    assert apart(along_axis(angle, angle), along_axis(0.0)) < 0.003


@pytest.mark.parametrize("shape", [(40, 36), (14, 13, 12)])
def test_without_anisotropy_tilted_waves_are_acoustic(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    velocity, tilt = 1800 + 400 * rng.random(shape), 6 * rng.random(shape)
    here, there = [55.0] * len(shape), [101.0] * len(shape)
    scheme = Scheme(layer=4, dtype="float64", order=4)
    azimuth, seconds = (tilt, 0.08) if len(shape) == 3 else (None, 0.3)
    plain = recorded(shot_of(Medium(shape, 10.0, velocity), here, there, seconds, scheme))
    tilted = recorded(shot_of(Medium(shape, 10.0, velocity, tilt=tilt, azimuth=azimuth), here, there, seconds, scheme))
    assert apart(tilted.traces, plain.traces) < 1e-12


PLANE, CUBE = (22, 20), (7, 6, 5)


@pytest.mark.parametrize(
    ("kind", "layer", "shape"),
    [
        *((kind, n, PLANE) for kind in ("acoustic", "density", "vti", "fourth", "tti") for n in (0, 6)),
        ("tti", 0, CUBE),
        ("tti", 2, CUBE),
    ],
)
def test_waves_in_the_roughest_media_do_not_grow(kind: str, layer: int, shape: tuple[int, ...]) -> None:
    """At the largest time step of all, from noise, for 10,000 steps."""
    rng, ndim = np.random.default_rng(3), len(shape)
    delta = 0.2 * rng.random(shape) - 0.1
    more = {
        "acoustic": {},
        "density": {"density": 1 + 2 * rng.random(shape)},
        "fourth": {"density": 1 + 2 * rng.random(shape)},
        "vti": {"epsilon": delta + 0.3 * rng.random(shape), "delta": delta},
        "tti": {"epsilon": delta + 0.3 * rng.random(shape), "delta": delta, "tilt": 6 * rng.random(shape)},
    }[kind]
    if ndim == 3:
        more["azimuth"] = 6 * rng.random(shape)
    medium = Medium(shape, 10.0, 1500 + 1500 * rng.random(shape), **more)
    fourth = 4 if kind == "fourth" else 2
    scheme = Scheme(8 if ndim == 2 else 4, courant=1.0, layer=layer, absorber="cpml", time_order=fourth)
    propagator = Propagator(medium, scheme if layer else replace(scheme, absorber="sponge"))
    problem, _ = propagator.problem(np.zeros((0, ndim)), np.zeros((0, 0)), np.zeros((0, ndim)))
    noise = np.zeros(propagator.frame.grid.shape, np.float32)
    noise[propagator.frame.inside.slices((0,) * ndim)] = rng.random(shape) - 0.5
    waves = {name: replace(f, init=noise) for name, f in problem.fields.items() if name.split(".")[0] in "upr"}
    problem = replace(problem, fields=MappingProxyType({**problem.fields, **waves}))
    norms = []
    with Simulation(problem, 10_000, devices="cpu:1") as simulation:
        for _ in range(103):
            simulation.run(97)  # in no common measure with the periods of waves that stay
            norms.append(float(np.linalg.norm(simulation.gather(propagator.waves[0].name))))
    assert max(norms[51:]) < 1.15 * max(norms[1:51])
    assert not layer or max(norms[77:]) <= 1.02 * max(norms[26:51])


def test_a_sponge_sends_little_back() -> None:
    medium = Medium((61, 61), 10.0, 2000.0)
    here, there = (300.0, 300.0), [(500.0, 300.0), (300.0, 590.0)]
    found = compiled(shot_of(medium, here, there, 0.9, Scheme(layer=40))).traces
    times = np.arange(found.shape[1])
    dt = Propagator(medium, EXACT).dt
    for trace, distance in zip(found, (200.0, 290.0), strict=True):
        wave = greens(times, distance, 2000.0, 2, dt)
        assert np.abs(trace - wave).max() < 0.025 * np.abs(wave).max()


def test_layers_around_tilted_axes_send_less_back_than_a_sponge() -> None:
    """At worst of three places beside a wave that has not come back yet; the slow wave of these equations with it."""
    there = np.array([(250.0, 390.0), (490.0, 390.0), (10.0, 100.0)])

    def traces(nodes: int, off: float, scheme: Scheme) -> Array:
        medium = Medium((nodes, nodes - 10), 10.0, 2000.0, epsilon=0.25, delta=0.1, tilt=0.6)
        return compiled(shot_of(medium, (250.0 + off, 200.0 + off), there + off, 0.6, scheme)).traces

    expected = traces(171, 600.0, Scheme(layer=20))
    sponge, matched, thin = (
        (np.abs(traces(51, 0.0, scheme) - expected).max(axis=1) / np.abs(expected).max(axis=1)).max()
        for scheme in (Scheme(layer=20), Scheme(layer=20, absorber="cpml"), Scheme(layer=10, absorber="cpml"))
    )
    print(sponge, matched, thin)
    assert matched < 0.08
    assert max(2 * matched, thin) < sponge


@pytest.mark.parametrize("more", [{}, {"density": 1.0}, {"epsilon": 0.2, "delta": 0.1}], ids=str)
def test_perfectly_matched_layers_send_almost_nothing_back(more: Mapping[str, float]) -> None:
    """Ten cells, beside a grid whose edges the wave does not reach and come back from: 0.3 %, in the corners too."""
    small, large = (Medium((n, n - 10), 10.0, 2000.0, **more) for n in (51, 171))
    there = np.array([(250.0, 390.0), (490.0, 390.0), (10.0, 100.0)])
    found, expected = (
        compiled(
            shot_of(medium, (250.0 + off, 200.0 + off), there + off, 0.6, Scheme(layer=10, absorber="cpml"))
        ).traces
        for medium, off in ((small, 0.0), (large, 600.0))
    )
    for one, two in zip(found, expected, strict=True):
        assert np.abs(one - two).max() < 0.003 * np.abs(two).max()


def test_perfectly_matched_layers_in_3d_send_almost_nothing_back() -> None:
    here, there = (200.0, 190.0, 180.0), [(300.0, 300.0, 220.0), (20.0, 340.0, 190.0)]
    medium, scheme = Medium((19, 19, 19), 20.0, 2000.0), Scheme(layer=10, absorber="cpml", dtype="float64")
    gather = compiled(shot_of(medium, here, there, 0.5, scheme))
    for trace, position in zip(gather.traces, there, strict=True):
        wave = greens(gather.times, float(np.linalg.norm(np.subtract(position, here))), 2000.0, 3, gather.dt)
        assert np.abs(trace - wave).max() < 0.005 * np.abs(wave).max()


@pytest.mark.parametrize(("density", "time_order"), [(None, 2), (1.0, 2), (None, 4)])
def test_a_free_surface_sends_the_mirror_image_back(density: float | None, time_order: TimeOrder) -> None:
    """A source of the other sign above the surface."""
    medium = Medium((61, 41), 10.0, 2000.0, density)
    here, there = (220.0, 63.0), (370.0, 107.0)
    scheme = Scheme(layer=10, free_surface=True, dtype="float64", absorber="cpml", time_order=time_order)
    gather = recorded(shot_of(medium, here, there, 0.4, scheme))
    direct, image = (
        greens(gather.times, float(np.hypot(150.0, 107.0 - z)), 2000.0, 2, gather.dt, stepped=time_order == 2)
        for z in (63.0, -63.0)
    )
    assert apart(gather.traces[0], direct - image) < 3e-3


@pytest.mark.parametrize("shape", [(30, 22), (12, 11, 8)])
def test_a_free_surface_over_tilted_media_is_a_plane_of_symmetry(shape: tuple[int, ...]) -> None:
    """To rounding as in a medium and its mirror image, with a source of the other sign there; angles are rough."""
    rng, ndim = np.random.default_rng(5), len(shape)
    delta = 0.2 * rng.random(shape)
    given = {"velocity": 1800 + 400 * rng.random(shape), "epsilon": delta + 0.1, "delta": delta}
    given["tilt"] = 6 * rng.random(shape) * np.minimum(np.arange(shape[-1]), 1)
    if ndim == 3:
        given["azimuth"] = 6 * rng.random(shape)
    scheme = replace(EXACT, order=4, free_surface=True)
    half = Propagator(Medium(shape, 10.0, **given), scheme)
    turned = {name: values[..., :0:-1] * (-1 if name == "tilt" else 1) for name, values in given.items()}
    doubled = {name: np.concatenate([turned[name], values], axis=-1) for name, values in given.items()}
    whole = Medium((*shape[:-1], 2 * shape[-1] - 1), 10.0, **doubled)
    full = Propagator(whole, replace(scheme, free_surface=False), half.dt)
    middle, steps = np.array([*[0.0] * (ndim - 1), 10.0 * (shape[-1] - 1)]), half.steps(0.2)
    here, there = np.array([*[73.0] * (ndim - 1), 53.0]), np.array([*[91.0] * (ndim - 1), 27.0])

    def trace(propagator: Propagator, source: Array, receiver: Array) -> Array:
        return recorded(Shot(propagator, [PointSource(tuple(source), PULSE)], receiver[None], steps)).traces[0]

    above = here * np.array([*[1.0] * (ndim - 1), -1.0])
    expected = trace(full, middle + here, middle + there) - trace(full, middle + above, middle + there)
    assert apart(trace(half, here, there), expected) < 1e-12
