"""Plane waves in a box of total field: nothing of them outside, their field inside, the same bits on any devices."""

from __future__ import annotations

from dataclasses import replace
from math import cos, radians, sin, sqrt
from typing import Any

import numpy as np
import pytest
from fdtd3d_examples import SPACING, traces, vacuum

import peergrid
from peergrid import Options
from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.models.fdtd3d import (
    AXES,
    COMPONENTS,
    VACUUM,
    Domain,
    Drive,
    Medium,
    PlaneWave,
    Receiver,
    build,
    debye,
    lorentz,
)
from peergrid.models.fdtd3d.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import Mode
from peergrid.models.waveforms import Ricker

SHAPE, LO, HI, STEPS = (22, 20, 24), (6, 5, 7), (15, 14, 17), 150
INSIDE, OUTSIDE = Receiver((10, 9, 12)), (Receiver((3, 9, 12)), Receiver((18, 10, 12)), Receiver((10, 17, 20)))
DRIVE = Drive(Ricker(4e9))
WET = Medium("wet", permittivity=2.25, permeability=1.5)
WAYS = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (2, 1, 0), (1, 2, 3), (-1, -1, -1), (0, -1, 3), (3, -2, 2)]


def across(way: Index, degrees: float) -> tuple[float, float, float]:
    """A unit vector normal to a way on cubic cells."""
    one = np.cross(way, (0, 0, 1) if way[0] or way[1] else (1, 0, 0))
    two = np.cross(way, one)
    x, y, z = cos(radians(degrees)) * one / np.linalg.norm(one) + sin(radians(degrees)) * two / np.linalg.norm(two)
    return float(x), float(y), float(z)


def domain(wave: PlaneWave, background: Medium = VACUUM, **changes: Any) -> Domain:
    named = tuple(replace(one, name=f"rx{number}") for number, one in enumerate((INSIDE, *OUTSIDE), start=1))
    return vacuum(SHAPE, STEPS, media=(background,), sources=(wave,), receivers=named, **changes)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_a_wave_is_outside_its_box(way: Index) -> None:
    """Inside it is the waveform, on its way at the medium's speed, E across H in the ratio of the medium."""
    polarisation, background = across(way, 35.0), VACUUM if way[0] else WET
    wave = PlaneWave(LO, HI, way, polarisation, DRIVE, background.name)
    made = domain(wave, background)
    found = traces(build(made))
    largest = max(np.abs(found["rx1", c]).max() for c in COMPONENTS if c[0] == "E")
    assert largest == pytest.approx(np.abs(polarisation).max(), rel=0.01)
    for number in (2, 3, 4):
        for component in COMPONENTS:
            unit = 1.0 if component[0] == "E" else ETA_0
            assert np.abs(found[f"rx{number}", component]).max() * unit < 1e-14 * largest
    index = sqrt(background.permittivity * background.permeability)
    steps = made.dt * SPEED_OF_LIGHT / SPACING / index * np.sqrt(np.dot(way, way))  # places that it goes in a step
    impedance = ETA_0 * sqrt(background.permeability / background.permittivity)
    unit = np.array(way) / np.linalg.norm(way)
    for letter, vector in (("E", np.array(polarisation)), ("H", np.cross(unit, polarisation) / impedance)):
        for axis, share in enumerate(vector):
            shifted = [0.5 * ((k == axis) == (letter == "E")) for k in range(3)]
            place = wave.place(INSIDE.node) + np.dot(way, shifted)
            times = made.dt * (np.arange(STEPS) + (1.0 if letter == "E" else 0.5) - place / steps)
            expected = share * np.where(times > 0, DRIVE.waveform.sample(times), 0.0)
            apart = found["rx1", f"{letter}{'xyz'[axis]}"] - expected
            assert np.abs(apart).max() < 0.016 * np.abs(vector).max()


SOIL = Medium("soil", 3.0, 0.02, 1.2, poles=(debye(2.0, 2e-11), lorentz(0.5, 6e9, 1e9)))


def test_a_wave_in_a_medium_with_poles_has_its_impedance_and_leaves_nothing_outside() -> None:
    """E at the box is the waveform after its way as ε(ω) has it, H that over the medium's impedance.

    Tolerance: the scheme's own speed, after 6 cells of which 13 make the wavelength of the spectrum's peak, is 2 %.
    """
    way = (0, 0, 1)
    made = domain(PlaneWave(LO, HI, way, (1.0, 0.0, 0.0), DRIVE, SOIL.name), SOIL)
    found = traces(build(made))
    for number in (2, 3, 4):
        assert max(np.abs(found[f"rx{number}", c]).max() for c in ("Ex", "Ez")) < 1e-14
    omega = 2 * np.pi * np.fft.rfftfreq(64 * STEPS, made.dt)[1:]
    index = np.sqrt(SOIL.relative(omega) * SOIL.permeability)
    sent = np.fft.rfft(DRIVE.waveform.sample(made.dt * np.arange(STEPS)), 64 * STEPS)[1:]
    place = INSIDE.node[2] - (LO[2] - 1)
    for name, on, half, over in (("Ex", 0.0, 1.0, 1.0), ("Hy", 0.5, 0.5, ETA_0 * SOIL.permeability / index)):
        late = half * made.dt - (place + on) * SPACING * index / SPEED_OF_LIGHT
        expected = np.fft.irfft([0, *(sent * np.exp(1j * omega * late) / over)], 64 * STEPS)[:STEPS]
        assert np.abs(found["rx1", name] - expected).max() < 0.03 * np.abs(expected).max()


def test_a_wave_does_not_start_in_a_metal() -> None:
    metal = replace(SOIL, conductivity=1e9)
    with pytest.raises(UsageError, match="in a medium that it can cross, got 'soil', where its higher frequencies"):
        build(domain(PlaneWave(LO, HI, (0, 0, 1), (1.0, 0.0, 0.0), DRIVE, metal.name), metal))


@pytest.mark.parametrize("way", [(0, 0, 1), (0, -1, 0)])
def test_a_wave_that_meets_layers_leaves_nothing_outside(way: Index) -> None:
    """Inside are the wave and what layers throw back, as without a box: the fields of the same layers met by one more
    wave from the same place, in a box of another size.
    """
    axis = next(k for k in range(3) if way[k])
    shape = tuple(n + 8 * (k == axis) for k, n in enumerate(SHAPE))
    made = replace(domain(PlaneWave(LO, HI, way, across(way, 35.0), DRIVE, None)), media=(VACUUM, SOIL, WET))
    made = replace(made, shape=shape, ids=np.zeros((6, *(n + 1 for n in shape)), np.uint8))
    for first, stop, number in ((9, 11, 1), (11, 13, 2)):
        made.ids[(slice(None), *(slice(first, stop) if k == axis else slice(None) for k in range(3)))] = number
    origin = tuple(-3 if m > 0 else n + 3 if m < 0 else 0 for m, n in zip(way, shape, strict=True))
    boxes = [(LO, HI), (tuple(i - 2 for i in LO), tuple(i + 2 for i in HI))]
    found = [
        traces(build(replace(made, sources=(replace(made.sources[0], lo=lo, hi=hi, origin=origin),))))
        for lo, hi in boxes
    ]  # type: ignore[type-var]
    largest = np.abs(found[0]["rx1", "Ex"]).max()
    for number in (3, 4) if axis == 2 else (2, 3):
        assert max(np.abs(found[0][f"rx{number}", c]).max() for c in ("Ex", "Ez", "Ey")) < 1e-14 * largest
    for component in ("Ex", "Hx"):
        np.testing.assert_allclose(found[0]["rx1", component], found[1]["rx1", component], atol=1e-13 * largest)
    alone = traces(build(domain(PlaneWave(LO, HI, way, across(way, 35.0), DRIVE, origin=origin))))
    assert np.abs(alone["rx1", "Ex"] - found[0]["rx1", "Ex"]).max() > 0.1 * largest


@pytest.mark.parametrize(
    ("way", "place", "told"),
    [
        ((0, 0, 1), np.s_[:, :, :, 11:], 0),  # a layer across the way
        ((0, 0, -1), np.s_[:, 9:12, 8:11, 10:13], 0),  # a body inside
        ((0, 1, 0), np.s_[:, :, :, 11:], 1),  # a layer along the way
        ((0, 0, 1), np.s_[:, 14:, :, :], 1),  # all beyond a face
        ((0, 0, 1), np.s_[:, 9:12, 3:8, 10:13], 1),  # a body through a face
    ],
)
def test_a_wave_in_other_media_on_some_faces_is_told(way: Index, place: tuple[slice, ...], told: int) -> None:
    made = replace(domain(PlaneWave(LO, HI, way, across(way, 35.0), DRIVE, None)), media=(VACUUM, WET))
    made.ids[place] = 1
    assert sum("meets other media on some faces" in one for one in build(made).warnings) == told


@pytest.mark.parametrize("mode", ["TMy", "TEz"])
def test_nothing_is_outside_in_a_plane(mode: Mode) -> None:
    flat = AXES.index(mode[-1])  # type: ignore[arg-type]
    way = tuple(0 if k == flat else 2 - (k == 0) for k in range(3))
    normal = [float(k == flat) for k in range(3)]
    polarisation = normal if mode[1] == "M" else np.cross(way, normal) / np.linalg.norm(way)

    def cut(node: Index) -> Index:
        return tuple(0 if k == flat else i for k, i in enumerate(node))

    x, y, z = map(float, polarisation)
    shape = tuple(1 if k == flat else n for k, n in enumerate(SHAPE))
    ids = np.zeros((6, *(1 if k == flat else n + 1 for k, n in enumerate(SHAPE))), np.uint8)
    wave = PlaneWave(cut(LO), cut(HI), way, (x, y, z), DRIVE)
    nodes = ((10, 9, 12), (18, 17, 20))
    made = vacuum(SHAPE, STEPS, sources=(wave,), receivers=tuple(Receiver(cut(n)) for n in nodes))
    found = traces(build(replace(made, shape=shape, ids=ids, mode=mode, dt=made.dt)))
    for component in replace(made, mode=mode).live:
        inside, outside = (np.abs(found[f"rx{n}", component]).max() for n in (1, 2))
        assert inside > 0
        assert outside < 1e-14 * inside


def test_bits_of_any_devices_and_strategies() -> None:
    wave = PlaneWave(LO, HI, (1, 2, -1), across((1, 2, -1), 90.0), DRIVE)
    problem = build(replace(domain(wave, dtype="float32"), steps=40)).problem
    asked = [("cpu:1", Options("serial", 1)), ("cpu:3", Options("overlap", 2)), ("cpu:2", Options("peer", 1))]
    found = {peergrid.run(problem, 40, devices=devices, options=options).sha256 for devices, options in asked}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"direction": (0, 0, 0)}, "is expected to go along three whole numbers that are not all 0, got"),
        ({"direction": (0.6, 0.8, 0.0)}, "is expected to go along three whole numbers that are not all 0, got"),
        ({"polarisation": (1.0, 0.0, 0.0)}, "to have its fields across its direction"),
        ({"medium": None, "direction": (1, 1, 0)}, r"to meet layers along one axis, got direction \(1, 1, 0\)"),
        ({"medium": "mud"}, "is expected in a medium of the domain that is no perfect conductor, got 'mud'"),
        ({"lo": (0, 5, 7)}, "is expected in a box within nodes 1 to 21 along x, got 0 to 15"),
        ({"origin": (6, 5, 7)}, r"is expected to set out before its box, got node \(6, 5, 7\)"),
    ],
)
def test_waves_that_cannot_be_are_refused(changes: dict[str, object], said: str) -> None:
    wave = replace(PlaneWave(LO, HI, (1, 0, 0), (0, 0, 1), DRIVE), **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said):
        build(domain(wave))
