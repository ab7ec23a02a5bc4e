"""Electromagnetic fields beside formulas that need a series or an integral: oblique waves, spheres, half spaces."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, stable, traces, vacuum
from scipy.special import jv, spherical_jn, spherical_yn

from peergrid.grid import Array
from peergrid.models.fdtd3d import (
    COMPONENTS,
    VACUUM,
    Domain,
    Drive,
    ElectricDipole,
    Medium,
    PlaneWave,
    Receiver,
    build,
    debye,
)
from peergrid.models.fdtd3d.constants import EPSILON_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import Mode
from peergrid.models.waveforms import Ricker

ACROSS, FIRST = 20, 200  # cells between the plates of a guide; the node from which on it is filled


def guide(mode: Mode, filling: Medium, steps: int) -> Domain:
    """Two conducting plates between which a wave goes to and fro at an angle, half a period across."""
    ids = np.zeros((6, 301, ACROSS + 1, 1), np.uint8)
    ids[:, FIRST:] = 1
    ids[0, FIRST - 1] = 2  # Ex, normal to the interface, on which it lies
    between = Medium("interface", 2 / (1 + 1 / filling.permittivity))
    if mode == "TEz":
        places, axis, part = [(j, cos(pi * (j + 0.5) / ACROSS)) for j in range(ACROSS)], "y", "Ey"
    else:
        places, axis, part = [(j, sin(pi * j / ACROSS)) for j in range(1, ACROSS)], "z", "Ez"
    absorber = absorbing(60, ("x-", "x+"))
    return vacuum(
        (300, ACROSS, 1), steps, mode=mode, ids=ids, media=(VACUUM, filling, between), absorber=absorber,
        sources=tuple(ElectricDipole(axis, (80, j, 0), Drive(Ricker(6e9, amplitude=share))) for j, share in places),
        receivers=(Receiver((120, 3, 0), (part,)),),
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["TMz", "TEz"])
def test_waves_reflect_by_fresnels_formula_at_any_angle(mode: Mode) -> None:
    """Between plates a wave at sin θ = λ / 2b, from 28 to 49 degrees; E along the interface, and in the plane of
    incidence.
    """
    filling, steps = Medium("dielectric", 2.0), 1000
    part = "Ey" if mode == "TEz" else "Ez"
    alone, both = (traces(build(guide(mode, m, steps)), "cpu:1")["rx1", part] for m in (VACUUM, filling))
    frequency = np.fft.rfftfreq(1 << 14, stable((SPACING, SPACING)))
    band = (frequency > 5e9) & (frequency < 8e9)
    fade = np.cos(np.linspace(-3 * pi / 4, pi / 2, steps).clip(0))  # no record has the end of waves that hardly get on
    incoming, echo = (np.fft.rfft(fade * trace, 1 << 14)[band] for trace in (alone, both - alone))
    sine = SPEED_OF_LIGHT / frequency[band] / (2 * ACROSS * SPACING)
    here, there = np.sqrt(1 - sine**2), np.sqrt(filling.permittivity - sine**2)
    if mode == "TEz":
        there = there / filling.permittivity
    expected = np.abs((here - there) / (here + there))
    assert 27 < np.degrees(np.arcsin(sine)).min() < 29 < 48 < np.degrees(np.arcsin(sine)).max()
    assert np.abs(np.abs(echo / incoming) - expected).max() < 0.02


HALF, RADIUS, BOX = 25, 8, 12  # cells: half of a cube, a sphere in its middle, half of the box of total field
POLE = debye(3.0, 2e-11)
AROUND = ((0, 0, -14), (0, 0, 14), (0, 14, 0), (8, 0, -14))  # nodes from the sphere's middle


def sphere(medium: Medium, receivers: tuple[Receiver, ...]) -> Domain:
    """A ball in a plane wave along z with E along x; each component has the medium of its place."""
    ids = np.zeros((6, *[2 * HALF + 1] * 3), np.uint8)
    for number, component in enumerate(COMPONENTS[:3]):
        own = "xyz".index(component[1])
        places = np.meshgrid(*(np.arange(2 * HALF + 1) - HALF + 0.5 * (k == own) for k in range(3)), indexing="ij")
        ids[number][sum(p**2 for p in places) < RADIUS**2] = 1
    lo, hi = (HALF - BOX,) * 3, (HALF + BOX,) * 3
    wave = PlaneWave(lo, hi, (0, 0, 1), (1, 0, 0), Drive(Ricker(4e9)))
    return vacuum(
        (2 * HALF,) * 3,
        330,
        media=(VACUUM, medium),
        ids=ids,
        absorber=absorbing(9),
        sources=(wave,),
        receivers=receivers,
    )


def scattered(places: Array, wavenumber: float, radius: float, index: complex) -> Array:
    """E_x of a sphere in a wave exp(i k z) along x, by Mie's series; places: metres from its middle, shape (n, 3).

    Method: C. Bohren and D. Huffman, Absorption and Scattering of Light by Small Particles, 1983, chapter 4.
    """
    size, inner = wavenumber * radius, index * wavenumber * radius
    r = np.linalg.norm(places, axis=1)
    rho, cosine = wavenumber * r, places[:, 2] / r
    sine, phi = np.sqrt(1 - cosine**2), np.arctan2(places[:, 1], places[:, 0])

    def hankel(n: int, x: Array | float, derivative: bool = False) -> Array:
        return spherical_jn(n, x, derivative) + 1j * spherical_yn(n, x, derivative)

    def riccati(f: Any, n: int, x: Any) -> Any:  # the derivative of x f(x)
        return f(n, x) + x * f(n, x, True)

    field = np.zeros((3, len(r)), np.complex128)
    before, pi_n = np.zeros_like(r), np.ones_like(r)
    for n in range(1, 12):
        tau = n * cosine * pi_n - (n + 1) * before
        j, h = spherical_jn(n, size), hankel(n, size)
        dj, dh = riccati(spherical_jn, n, size), riccati(hankel, n, size)
        ji, dji = spherical_jn(n, inner), riccati(spherical_jn, n, inner)
        a = (index**2 * ji * dj - j * dji) / (index**2 * ji * dh - h * dji)
        b = (ji * dj - j * dji) / (ji * dh - h * dji)
        amplitude, z, dz = 1j**n * (2 * n + 1) / (n * (n + 1)), hankel(n, rho), riccati(hankel, n, rho) / rho
        field[0] += amplitude * 1j * a * np.cos(phi) * n * (n + 1) * sine * pi_n * z / rho
        field[1] += amplitude * np.cos(phi) * (1j * a * tau * dz - b * pi_n * z)
        field[2] += amplitude * np.sin(phi) * (-1j * a * pi_n * dz + b * tau * z)
        before, pi_n = pi_n, ((2 * n + 1) * cosine * pi_n - (n + 1) * before) / n
    return field[0] * sine * np.cos(phi) + field[1] * cosine * np.cos(phi) - field[2] * np.sin(phi)


def test_a_dispersive_sphere_scatters_by_mies_series() -> None:
    """A Debye medium, 2.5 to 5.5 GHz, before, behind and beside the sphere; 2 % by the steps of its surface."""
    middle = Receiver((HALF,) * 3, ("Ex",))
    around = tuple(Receiver(tuple(HALF + i for i in place), ("Ex",)) for place in AROUND)  # type: ignore[arg-type]
    medium = Medium("wet", 2.0, poles=(POLE,))
    incoming = traces(build(sphere(VACUUM, (middle,))))["rx1", "Ex"]
    found = traces(build(sphere(medium, around)))
    frequency = np.fft.rfftfreq(1 << 12, stable((SPACING,) * 3))
    band = np.flatnonzero((frequency > 2.5e9) & (frequency < 5.5e9))[::20]
    wave = np.fft.rfft(incoming, 1 << 12)[band]
    echoes = np.array([np.fft.rfft(found[f"rx{k}", "Ex"], 1 << 12)[band] for k in range(1, len(around) + 1)])
    places = SPACING * (np.array(AROUND) + np.array([0.5, 0, 0]))
    omega = 2 * pi * frequency[band]
    permittivity = medium.permittivity + 3.0 / (1 - 1j * omega * 2e-11)
    expected = [
        scattered(places, w / SPEED_OF_LIGHT, RADIUS * SPACING, np.sqrt(p))
        for w, p in zip(omega, permittivity, strict=True)
    ]
    error = np.abs(np.conj(echoes / wave).T - expected) / np.abs(expected).max()
    assert error.max() < 0.03


SOIL, FACE = Medium("soil", 4.0, 0.02), 20  # the half space below a plane of nodes
ABOVE, ASIDE, HEIGHT = 6, 9, 8  # cells from the plane to a dipole, from there along x to a receiver, and its height


def over(soil: Medium) -> Domain:
    """A dipole along z over a half space; what is tangential in its face has the mean of both media."""
    ids = np.zeros((6, 45, 45, 45), np.uint8)
    ids[:3, :, :, :FACE] = 1
    ids[:2, :, :, FACE] = 2
    mean = Medium("mean", 0.5 * (1 + soil.permittivity), 0.5 * soil.conductivity)
    node = (18, 22, FACE + ABOVE)
    return vacuum(
        (44, 44, 44), 330, media=(VACUUM, soil, mean), ids=ids, absorber=absorbing(9),
        sources=(ElectricDipole("z", node, Drive(Ricker(4e9))),),
        receivers=(Receiver((18 + ASIDE, 22, FACE + HEIGHT), ("Ez",)),),
    )  # fmt: skip


def sent_back(omega: float, soil: Medium) -> complex:
    """E_z per ampere that a half space sends back to the receiver, exp(i ω t): Sommerfeld's integral.

    The way in the plane of wave numbers keeps away from the branch point. Method: W. C. Chew, Waves and Fields in
    Inhomogeneous Media, 1995, section 2.3.
    """
    k, permittivity = omega / SPEED_OF_LIGHT, soil.permittivity + soil.conductivity / (1j * omega * EPSILON_0)
    rise, out = (ABOVE + HEIGHT + 1) * SPACING, ASIDE * SPACING  # both lie half a cell above their nodes
    t = np.linspace(0, 1, 4001)
    ways = (2 * k * t + 0.5j * k * np.sin(pi * t), 2 * k + 30 / rise * t)
    total = 0j
    for along in ways:
        upper, lower = (np.sqrt(e * k**2 - along**2 + 0j) for e in (1.0, permittivity))
        upper, lower = (np.where(q.imag > 0, -q, q) for q in (upper, lower))
        echo = (permittivity * upper - lower) / (permittivity * upper + lower)
        values = along**3 / (1j * upper) * echo * jv(0, along * out) * np.exp(-1j * upper * rise)
        total += complex(np.trapezoid(values, along))
    return total * SPACING / (4j * pi * omega * EPSILON_0)


def test_a_half_space_sends_back_sommerfelds_integral() -> None:
    alone, both = (traces(build(over(soil)))["rx1", "Ez"] for soil in (VACUUM, SOIL))
    dt = stable((SPACING,) * 3)
    frequency = np.fft.rfftfreq(1 << 12, dt)
    band = np.flatnonzero((frequency > 2e9) & (frequency < 6e9))[::20]
    omega = 2 * pi * frequency[band]
    current = Drive(Ricker(4e9)).samples(330, dt, half=True)
    # the current is of half steps, the field of the steps after
    source = np.fft.rfft(current, 1 << 12)[band] * np.exp(0.5j * omega * dt)
    found = np.fft.rfft(both - alone, 1 << 12)[band] / source
    expected = np.array([sent_back(w, SOIL) for w in omega])
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
