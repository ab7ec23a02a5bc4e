"""Thin wires: what they take up is as their radius has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, stable, traces, vacuum
from scipy.special import hankel2

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.models.fdtd3d import Domain, Drive, ElectricDipole, Receiver, Wire, build
from peergrid.models.fdtd3d.constants import MU_0, SPEED_OF_LIGHT
from peergrid.models.waveforms import Ricker

WIDTH, MIDDLE = 56, (28, 28, 0)
FREQUENCIES = np.array([2.5e9, 3.5e9, 5e9])


def lit(wires: tuple[Wire, ...]) -> Domain:
    """A line current beside the place of a wire, both between two plates, so that nothing varies along them."""
    return vacuum(
        (WIDTH, WIDTH, 2), 500,
        wires=wires, absorber=absorbing(10, ("x-", "x+", "y-", "y+")),
        sources=tuple(ElectricDipole("z", (16, 24, k), Drive(Ricker(4e9))) for k in range(2)),
        receivers=(Receiver(MIDDLE, ("Ez", "Iz")),),
    )  # fmt: skip


def spectrum(values: Array, start: float, dt: float) -> Array:
    times = start + dt * np.arange(len(values))
    found: Array = np.exp(-2j * np.pi * np.outer(FREQUENCIES, times)) @ values
    return found


@pytest.mark.parametrize("share", [0.02, 0.1, 0.45])
def test_a_wire_takes_up_the_current_of_its_radius(share: float) -> None:
    """The field of a current I in a long wire cancels at its radius a the field that is there without it:
    E = ωμ₀ I H₀²(ka) / 4, H₀² Hankel's function.
    """
    alone, radius = lit(()), share * SPACING
    both = replace(alone, wires=(Wire("z", MIDDLE, 2, radius),))
    field = spectrum(traces(build(alone))["rx1", "Ez"], alone.dt, alone.dt)
    current = spectrum(traces(build(both))["rx1", "Iz"], 0.5 * alone.dt, alone.dt)
    k = 2 * np.pi * FREQUENCIES / SPEED_OF_LIGHT
    expected = 4 * field / (2 * np.pi * FREQUENCIES * MU_0 * hankel2(0, k * radius))
    assert np.abs(current / expected - 1).max() < 0.025


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (Wire("z", (6, 6, 2), 4, 0.0011), "below half a cell, 0.001 m, got 0.0011 m"),
        (Wire("z", (0, 6, 2), 4, 0.0001), "inside the domain and outside of absorbers, got nodes 0 to 0 along x"),
        (Wire("y", (6, 6, 2), 7, 0.0001), "got nodes 6 to 13 along y"),
        (Wire("z", (6, 7, 3), 4, 0.0001), "to have cells between it and other wires"),
        (Wire("z", (6, 6, 3), 2, 0.0001), "to have cells between it and other wires"),
    ],
)
def test_wires_that_cannot_be_are_refused(wire: Wire, said: str) -> None:
    first = Wire("z", (6, 6, 3), 2, 0.0001)
    with pytest.raises(UsageError, match=f"Wire 2 .*{said}"):
        build(vacuum((12, 12, 10), 4, wires=(first, wire)))


def test_a_plane_has_no_wires() -> None:
    flat = vacuum((8, 8, 1), 4, mode="TMz", dt=stable((SPACING,) * 2), wires=(Wire("z", (4, 4, 0), 1, 0.0001),))
    with pytest.raises(UsageError, match="Wire 1 is expected in three dimensions, got mode TMz"):
        build(flat)
