"""A sphere of a dispersive medium in a plane wave beside Mie's series."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from fdtd3d_examples import SPACING, absorbing, stable, traces, vacuum
from scipy.special import spherical_jn, spherical_yn

from peergrid.grid import Array
from peergrid.models.fdtd3d import (
    COMPONENTS,
    VACUUM,
    Domain,
    Drive,
    Medium,
    PlaneWave,
    Receiver,
    build,
    debye,
)
from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT
from peergrid.models.waveforms import Ricker

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
