"""Plane waves in a box of total field: nothing of them outside, their field inside, the same bits on any devices."""

from __future__ import annotations

from dataclasses import replace
from math import cos, radians, sin, sqrt
from typing import Any

import numpy as np
import pytest
from fdtd3d_examples import traces, vacuum

import peergrid
from peergrid import Options
from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.models.fdtd3d import COMPONENTS, VACUUM, Domain, Drive, Medium, PlaneWave, Receiver, build
from peergrid.models.fdtd3d.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.waveforms import Ricker

SHAPE, LO, HI, STEPS = (22, 20, 24), (6, 5, 7), (15, 14, 17), 150
INSIDE, OUTSIDE = Receiver((10, 9, 12)), (Receiver((3, 9, 12)), Receiver((18, 10, 12)), Receiver((10, 17, 20)))
DRIVE = Drive(Ricker(4e9))
WET = Medium("wet", permittivity=2.25, permeability=1.5)
WAYS = [tuple(sign * (k == axis) for k in range(3)) for axis in range(3) for sign in (1, -1)]


def across(way: Index, degrees: float) -> tuple[float, float, float]:
    """A direction normal to a way along an axis."""
    axis = next(k for k, d in enumerate(way) if d)
    found = [0.0, 0.0, 0.0]
    found[(axis + 1) % 3], found[(axis + 2) % 3] = cos(radians(degrees)), sin(radians(degrees))
    return tuple(found)  # type: ignore[return-value]


def domain(wave: PlaneWave, background: Medium = VACUUM, **changes: Any) -> Domain:
    named = tuple(replace(one, name=f"rx{number}") for number, one in enumerate((INSIDE, *OUTSIDE), start=1))
    return vacuum(SHAPE, STEPS, media=(background,), sources=(wave,), receivers=named, **changes)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("background", [VACUUM, WET], ids=["vacuum", "wet"])
def test_nothing_of_a_wave_is_outside_its_box(way: Index, background: Medium) -> None:
    """Inside it is the waveform, on its way at the medium's speed, E across H in the ratio of the medium."""
    polarisation = across(way, 35.0)
    made = domain(PlaneWave(LO, HI, way, polarisation, DRIVE, background.name), background)
    found = traces(build(made))
    largest = max(np.abs(found["rx1", c]).max() for c in COMPONENTS if c[0] == "E")
    assert largest == pytest.approx(np.abs(polarisation).max(), rel=0.05)
    for number in (2, 3, 4):
        for component in COMPONENTS:
            unit = 1.0 if component[0] == "E" else ETA_0
            assert np.abs(found[f"rx{number}", component]).max() * unit < 1e-12 * largest
    index = sqrt(background.permittivity * background.permeability)
    axis = next(k for k, d in enumerate(way) if d)
    cells = INSIDE.node[axis] - (LO[axis] - 1) if way[axis] > 0 else HI[axis] + 1 - INSIDE.node[axis]
    times = made.dt * (1 + np.arange(STEPS)) - cells * made.spacing[axis] * index / SPEED_OF_LIGHT
    for k, share in enumerate(polarisation):
        expected = share * np.where(times > 0, DRIVE.waveform.sample(times), 0.0)
        assert np.abs(found["rx1", f"E{'xyz'[k]}"] - expected).max() < 0.05
    ratio = sqrt(background.permittivity / background.permeability) / ETA_0
    crossed = np.cross(way, polarisation) * ratio
    for k in range(3):
        h = found["rx1", f"H{'xyz'[k]}"]
        assert h[np.abs(h).argmax()] == pytest.approx(
            crossed[k] * largest / np.abs(polarisation).max(), rel=0.06, abs=1e-12
        )


def test_bits_of_any_devices_and_strategies() -> None:
    wave = PlaneWave(LO, HI, (0, 1, 0), across((0, 1, 0), 90.0), DRIVE)
    problem = build(replace(domain(wave, dtype="float32"), steps=40)).problem
    asked = [("cpu:1", Options("serial", 1)), ("cpu:3", Options("overlap", 2)), ("cpu:2", Options("peer", 1))]
    found = {peergrid.run(problem, 40, devices=devices, options=options).sha256 for devices, options in asked}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"direction": (0.6, 0.8, 0.0)}, "is expected to go along an axis"),
        ({"polarisation": (1.0, 0.0, 0.0)}, "to have its fields across the way it goes"),
        ({"medium": "mud"}, "is expected in a medium of the domain without poles, got 'mud'"),
        ({"lo": (0, 5, 7)}, "is expected in a box within nodes 1 to 21 along x, got 0 to 15"),
        ({"origin": 6}, "is expected to set out before its box, got plane 6"),
    ],
)
def test_waves_that_cannot_be_are_refused(changes: dict[str, object], said: str) -> None:
    wave = replace(PlaneWave(LO, HI, (1, 0, 0), (0, 0, 1), DRIVE), **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said):
        build(domain(wave))
