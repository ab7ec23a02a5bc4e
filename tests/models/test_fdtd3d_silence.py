"""Warnings about domains that would show little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fdtd3d_examples import absorbing, vacuum

from peergrid.gprmax.waves import FORMS, Pulse, Sampled
from peergrid.models.fdtd3d import (
    PEC,
    VACUUM,
    Domain,
    DomainModel,
    Drive,
    ElectricDipole,
    MagneticDipole,
    Medium,
    PlaneWave,
    Receiver,
    build,
    debye,
)
from peergrid.models.model import Snapshots
from peergrid.models.waveforms import Ricker

PULSE = Drive(Ricker(5e9))
DIPOLE = ElectricDipole("z", (5, 5, 5), PULSE)


def domain(source: object = DIPOLE, steps: int = 200, media: tuple[Medium, ...] = (VACUUM, PEC)) -> Domain:
    return vacuum((12, 12, 12), steps, media=media, sources=(source,))


def test_a_domain_that_shows_something_has_no_warnings() -> None:
    listening = replace(domain(), receivers=(Receiver((6, 5, 5)), Receiver((6, 6, 6), ("Ix",))))
    assert build(listening).warnings == ()


def test_a_late_source_is_warned_about() -> None:
    end = f"but the run ends after {200 * domain().dt:.3g} s; look at its frequency (Hz) and delay (s), and at the time"
    for source, peak in (
        (replace(DIPOLE, drive=Drive(Ricker(5e3))), "0.000283"),
        (replace(DIPOLE, drive=Drive(Ricker(5e9), start=2e-3)), "0.002"),
        (MagneticDipole("z", (5, 5, 5), Drive(Pulse("gaussian", 1.0, 1e3, 1e-12))), "0.001"),
        (PlaneWave((3, 3, 3), (9, 9, 9), (1, 0, 0), (0.0, 0.0, 1.0), Drive(Ricker(1e3))), "0.00141"),
    ):
        (found,) = build(domain(source)).warnings
        assert found == f"Source 1 is at its strongest after {peak} s, {end} window (s)."


def test_a_coarse_grid_is_warned_about() -> None:
    wet = Medium("wet", 9.0, 0.01, poles=(debye(16.0, 1e-12),))
    (found,) = build(domain(media=(wet, PEC))).warnings
    assert found == (
        "The spacing should give at least 3 cells per shortest wavelength, got 2.2 ('wet' at 13.8 GHz); use 0.00044 m "
        "for accurate waves."
    )
    (hopeless,) = build(domain(replace(DIPOLE, drive=Drive(Ricker(5e12))))).warnings
    assert "got 0.011 ('free_space' at 1.38e+04 GHz)" in hopeless


def test_fields_that_stay_zero_are_warned_about() -> None:
    inside = replace(domain(), receivers=(Receiver((6, 5, 5)), Receiver((6, 5, 5), ("Ez",)), Receiver((8, 8, 8))))
    inside.ids[:, 5:7, 5:7, 5:7] = 1
    assert build(inside).warnings == (
        "Source 1 lies in or on a perfect conductor, where Ez stays zero; move it away.",
        "Receiver 1 lies in or on a perfect conductor, where the electric field that it records stays "
        "zero; move it away.",
        "Receiver 2 lies in or on a perfect conductor, where the electric field that it records stays "
        "zero; move it away.",
    )
    on_a_plate = replace(domain(replace(DIPOLE, node=(9, 9, 5))), receivers=(Receiver((6, 5, 5)),))
    on_a_plate.ids[:2, 5:8, 4:7, 5] = 1
    assert build(on_a_plate).warnings == ()


def test_places_in_absorbers_are_warned_about() -> None:
    outside = replace(domain(), absorber=absorbing(3), receivers=(Receiver((1, 5, 5)),))
    assert build(outside).warnings == (
        "Receiver 1 lies inside the absorber, where fields mean nothing; move it inwards.",
    )


def test_rare_snapshots_are_warned_about() -> None:
    (found,) = DomainModel(domain(), snapshots=Snapshots(every=201, fields=("Ez",))).build().warnings
    assert found == "output.snapshots asks for one every 201 steps, but the run has 200; use a smaller number."


@pytest.mark.parametrize("form", FORMS)
def test_a_pulse_of_gprmax_is_at_its_strongest(form: str) -> None:
    pulse = Pulse(form, 1.0, 1e9, 1e-11)
    times = np.linspace(0, 6e-9, 6001)
    sizes = np.abs(pulse.sample(times))
    near = np.abs(times - pulse.peak()) <= 0.3e-9
    assert sizes[near].max() == pytest.approx(sizes.max(), rel=0.01)


@pytest.mark.parametrize(
    ("form", "highest"), [("ricker", 2.76e9), ("gaussian", 3.03e9), ("contsine", 1.5e9), ("impulse", 0.0)]
)
def test_the_highest_frequency_of_a_pulse_of_gprmax(form: str, highest: float) -> None:
    assert Pulse(form, 1.0, 1e9, 1e-11).highest_frequency() == pytest.approx(highest, rel=0.03)


def test_samples_are_those_of_the_pulse_that_they_are_of() -> None:
    times, pulse = np.linspace(0, 3e-9, 301), Pulse("ricker", 1.0, 1e9, 1e-11)
    sampled = Sampled(times, pulse.sample(times), "waves.txt")
    assert sampled.peak() == pytest.approx(pulse.peak(), abs=1e-11)
    assert sampled.highest_frequency() == pytest.approx(pulse.highest_frequency(), rel=0.03)
