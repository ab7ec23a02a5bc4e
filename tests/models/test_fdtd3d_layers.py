"""Waves at plane interfaces beside formulas: Fresnel at angles, a dispersive layer, dipoles over two half spaces."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Literal

import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, stable, traces, vacuum
from scipy.special import jv

from peergrid.grid import Array
from peergrid.models.fdtd3d import (
    PEC,
    VACUUM,
    Domain,
    Drive,
    ElectricDipole,
    Medium,
    Pole,
    Receiver,
    build,
    debye,
)
from peergrid.models.fdtd3d.constants import EPSILON_0, SPEED_OF_LIGHT
from peergrid.models.waveforms import Doubles, Ricker

Polarisation = Literal["s", "p"]
FINE = 0.001  # metres of a cell of the guide
WIDTH = 40  # cells: from 4.8 to 7 GHz its first mode goes at 51 to 32 degrees to the axis
FED, HEARD, FACE, LENGTH = 60, 90, 120, 260
BEHIND = 200


@dataclass(frozen=True)
class Burst:
    """A wave of 5.9 GHz under a bell, so narrow in frequency that little is near the guide's cutoff of 3.7 GHz."""

    strength: float

    def sample(self, times: Doubles) -> Doubles:
        since = times - 1.6e-9
        bell = np.exp(-0.5 * (2 * pi * 0.55e9 * since) ** 2)
        return np.asarray(self.strength * bell * np.sin(2 * pi * 5.9e9 * since))


def mean(medium: Medium) -> Medium:
    """What a component in the face between a medium and vacuum has: the mean permittivity, poles and losses."""
    poles = tuple(Pole(0.5 * p.weight, p.rate, 0.5 * p.conductivity) for p in medium.poles)
    return Medium("mean", 0.5 * (1 + medium.permittivity), 0.5 * medium.conductivity, poles=poles)


def guide(polarisation: Polarisation, medium: Medium, last: int) -> Domain:
    """A plane between two conductors, its first mode sent from a line of dipoles: E across the plane (s) or in it (p).

    Such a mode is two plane waves at ±θ, sin θ = (cutoff frequency) / (frequency). Cells from FACE to `last` have the
    medium; its faces are nodes.
    """
    ids = np.zeros((6, LENGTH + 1, WIDTH + 1, 1), np.uint8)
    ids[:, FACE:last] = 1
    ids[1:3, FACE] = 2
    ids[1:3, last:] = 0
    ids[1:3, last : last + 1] = 2
    rows = np.arange(WIDTH)
    profile, axis = {
        "s": (np.sin(pi * rows / WIDTH), "z"),
        "p": (np.cos(pi * (rows + 0.5) / WIDTH), "y"),
    }[polarisation]
    sources = tuple(
        ElectricDipole(axis, (FED, int(j), 0), Drive(Burst(float(profile[j]))))  # type: ignore[arg-type]
        for j in rows
        if abs(profile[j]) > 1e-9
    )
    row = WIDTH // 2 if polarisation == "s" else 0
    receivers = tuple(Receiver((i, row, 0), (f"E{axis}",)) for i in (HEARD, BEHIND))  # type: ignore[arg-type]
    return vacuum(
        (LENGTH, WIDTH, 1), 2400, mode="TMz" if polarisation == "s" else "TEz", ids=ids,
        media=(VACUUM, medium, mean(medium)), spacing=(FINE,) * 3, dt=stable((FINE, FINE)),
        absorber=absorbing(30, ("x-", "x+")), sources=sources, receivers=receivers,
    )  # fmt: skip


def permittivity(medium: Medium, omega: Array) -> Array:
    """Relative and complex, from the poles' forms against time."""
    total = medium.permittivity + medium.conductivity / (1j * omega * EPSILON_0)
    for pole in medium.poles:
        rising = pole.weight / (1j * omega - pole.rate) + np.conj(pole.weight) / (1j * omega - np.conj(pole.rate))
        total = total + 0.5 * rising + pole.conductivity / (1j * omega)
    return np.asarray(total)


def by_layers(polarisation: Polarisation, medium: Medium, omega: Array, thickness: float) -> tuple[Array, Array]:
    """Reflection and transmission of tangential E, from face to face; an infinite thickness is a half space."""
    epsilon, across = permittivity(medium, omega), pi / (WIDTH * FINE)
    outer = np.sqrt((omega / SPEED_OF_LIGHT) ** 2 - across**2 + 0j)
    inner = np.sqrt(epsilon * (omega / SPEED_OF_LIGHT) ** 2 - across**2 + 0j)
    inner = np.where(inner.imag > 0, -inner, inner)
    ratio = outer / inner if polarisation == "s" else inner / (epsilon * outer)  # of impedances
    face = (ratio - 1) / (ratio + 1)
    if np.isinf(thickness):
        return face, 1 + face
    once = np.exp(-1j * inner * thickness)
    closed = 1 - face**2 * once**2
    return face * (1 - once**2) / closed, (1 - face**2) * once / closed


def along(omega: Array, dt: float) -> Array:
    """The wavenumber of the mode along the guide in vacuum, by the grid's own dispersion."""
    across, turned = np.sin(pi / WIDTH / 2), np.sin(omega * dt / 2) * FINE / (SPEED_OF_LIGHT * dt)
    return np.asarray(2 / FINE * np.arcsin(np.sqrt(turned**2 - across**2)))


@pytest.mark.parametrize("polarisation", ["s", "p"])
@pytest.mark.parametrize(
    ("medium", "cells"),
    [
        (Medium("soil", 4.0, 0.02), None),
        (Medium("wet", 2.0, 0.01, poles=(debye(3.0, 2e-11),)), 12),
    ],
    ids=["half space", "Debye layer"],
)
def test_interfaces_reflect_by_fresnels_formula_at_angles(
    polarisation: Polarisation, medium: Medium, cells: int | None
) -> None:
    """From 32 to 51 degrees; 20 cells at least to a wavelength within the medium: 0.6 % by the grid's dispersion."""
    last = LENGTH if cells is None else FACE + cells
    alone, both = (traces(build(guide(polarisation, other, last)), "cpu:1") for other in (VACUUM, medium))
    component = "Ez" if polarisation == "s" else "Ey"
    dt = stable((FINE, FINE))
    frequency = np.fft.rfftfreq(1 << 14, dt)
    band = (frequency > 4.8e9) & (frequency < 7e9)
    omega = 2 * pi * frequency[band]

    def spectrum(trace: Array) -> Array:
        return np.asarray(np.fft.rfft(trace, 1 << 14)[band])

    incoming = spectrum(alone["rx1", component])
    echo = spectrum(both["rx1", component] - alone["rx1", component])
    thickness = np.inf if cells is None else cells * FINE
    reflected, passed = by_layers(polarisation, medium, omega, thickness)
    wavenumber = along(omega, dt)
    expected = reflected * np.exp(-2j * wavenumber * (FACE - HEARD) * FINE)
    assert np.abs(echo / incoming - expected).max() < 0.006
    if cells is not None:
        through = spectrum(both["rx2", component]) / spectrum(alone["rx2", component])
        assert np.abs(through - passed * np.exp(1j * wavenumber * thickness)).max() < 0.006


def over_half_space(medium: Medium, omega: Array, moment: float, height: float, receiver: float, away: float) -> Array:
    """Ez of a vertical current element over a half space, for 1 A: Sommerfeld's integral (time factor exp(iωt)).

    The path of integration goes around the branch points in the upper half plane. A perfect conductor has the
    reflection 1: its image.
    """
    t = np.linspace(0, 3000, 12001)
    turn = 600.0
    path = t + 1j * np.where(t < turn, 30 * np.sin(pi * t / turn), 0)
    found = []
    for w in omega:
        k = w / SPEED_OF_LIGHT
        upper = np.sqrt(path**2 - k**2)
        if medium.stops_electric:
            reflection = np.ones_like(path)
        else:
            epsilon = permittivity(medium, np.array([w]))
            lower = np.sqrt(path**2 - epsilon * k**2)
            reflection = (epsilon * upper - lower) / (epsilon * upper + lower)
        kernel = reflection * path**3 / upper * np.exp(-upper * (height + receiver)) * jv(0, path * away)
        echo = np.trapezoid(kernel * np.gradient(path, t), t)
        rise = receiver - height
        way = float(np.hypot(away, rise))
        cosine = rise / way
        radial, rest = 3 * cosine**2 - 1, cosine**2 - 1
        near = radial * (1 / way**3 + 1j * k / way**2) - rest * k**2 / way
        found.append(moment / (4j * pi * w * EPSILON_0) * (near * np.exp(-1j * k * way) + echo))
    return np.array(found)


@pytest.mark.parametrize("medium", [PEC, Medium("soil", 4.0, 0.05)], ids=lambda m: m.name)
def test_a_dipole_over_a_half_space_is_sommerfelds(medium: Medium) -> None:
    """12 cells to the shortest wave in the soil; 1.5 % by the grid, and the absorbers' echoes."""
    ground, here, there = 14, (18, 18, 18), (26, 23, 20)
    ids = np.zeros((6, 37, 37, 39), np.uint8)
    ids[:3, :, :, :ground] = 1
    ids[:2, :, :, ground] = 2
    edge = PEC if medium.stops_electric else mean(medium)
    drive = Drive(Ricker(4e9))
    domain = vacuum(
        (36, 36, 38), 400, ids=ids, media=(VACUUM, medium, edge), absorber=absorbing(8),
        sources=(ElectricDipole("z", here, drive),), receivers=(Receiver(there, ("Ez",)),),
    )  # fmt: skip
    built = build(domain)
    found = traces(built)["rx1", "Ez"]
    dt = built.domain.dt
    times = dt * np.arange(1.0, len(found) + 1)
    frequency = np.linspace(2e9, 6e9, 9)
    omega = 2 * pi * frequency
    turning = np.exp(-1j * np.outer(omega, times))
    field, current = turning @ found, turning @ drive.waveform.sample(times)
    heights = [(node[2] + 0.5 - ground) * SPACING for node in (here, there)]
    expected = over_half_space(medium, omega, SPACING, heights[0], heights[1], SPACING * float(np.hypot(8, 5)))
    assert np.abs(field / current / expected - 1).max() < 0.015
