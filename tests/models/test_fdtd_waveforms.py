"""Waveforms: their peaks, their spectra, samples from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.models.silence import unsent
from peergrid.models.waveforms import Gaussian, Ricker, Samples, Sine, Waveform

TIMES = np.linspace(0, 20e-9, 40001)


@pytest.mark.parametrize(
    "waveform",
    [Ricker(1e9, 3.0), Gaussian(1e9, 0, 3.0), Gaussian(1e9, 1, 3.0), Gaussian(1e9, 2, 3.0), Sine(1e9, 3.0, 3.0)],
    ids=str,
)
def test_the_largest_value_is_the_amplitude_and_it_starts_from_rest(waveform: Waveform) -> None:
    values = waveform.sample(TIMES)
    assert np.abs(values).max() == pytest.approx(3.0, rel=1e-3)
    assert abs(values[0]) < 1e-4 * 3.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Ricker(0), r"^Ricker\.frequency is expected to be a positive number, got 0\.$"),
        (lambda: Ricker("25"), r"^Ricker\.frequency is expected to be a positive number, got '25'\.$"),  # type: ignore[arg-type]
        (
            lambda: Gaussian(1e9, amplitude=np.nan),
            r"^Gaussian\.amplitude is expected to be a finite number, got nan\.$",
        ),
        (lambda: Sine(1e9, ramp=0.5), r"^Sine\.ramp is expected to be a number of periods not below 1, got 0\.5\.$"),
        (lambda: Sine(1e9, delay=-1e-9), r"^Sine\.delay is expected to be a number not below 0, got -1e-09\.$"),
    ],
)
def test_numbers_made_in_python_keep_the_rules_of_model_files(make: Callable[[], Waveform], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make()


@pytest.mark.parametrize("order", [1, 2])
def test_a_derivative_is_the_derivative_but_for_scale(order: int) -> None:
    plain = np.gradient(Gaussian(1e9, 0).sample(TIMES), TIMES)
    slope = plain if order == 1 else np.gradient(plain, TIMES)
    np.testing.assert_allclose(Gaussian(1e9, order).sample(TIMES), slope / np.abs(slope).max(), atol=1e-4)  # type: ignore[arg-type]


def test_a_delay_shifts() -> None:
    np.testing.assert_allclose(Ricker(1e9, delay=2e-9).sample(TIMES + 2e-9), Ricker(1e9).sample(TIMES), atol=1e-12)


def test_the_spectrum_of_a_ricker_pulse_peaks_at_its_frequency() -> None:
    spectrum = np.abs(np.fft.rfft(Ricker(1e9).sample(TIMES)))
    frequencies = np.fft.rfftfreq(len(TIMES), TIMES[1])
    assert frequencies[spectrum.argmax()] == pytest.approx(1e9, abs=5e7)


def test_the_highest_frequency_is_where_the_spectrum_falls_to_one_per_cent() -> None:
    """A Ricker pulse has the spectrum x² exp(1 - x²), x = f/f₀: 0.01 of its peak at x = 2.757; resolution f₀/64."""
    x = Ricker(1e9).highest_frequency() / 1e9
    assert x**2 * np.exp(1 - x**2) == pytest.approx(0.01, rel=0.15)
    assert Ricker(2e9).highest_frequency() == pytest.approx(2 * Ricker(1e9).highest_frequency(), rel=1e-9)
    assert Sine(1e9, 2.0).highest_frequency() == 2e9
    assert Gaussian(1e9).highest_frequency() < Gaussian(1e9, 2).highest_frequency()


def test_samples_are_joined_by_lines_and_zero_outside(tmp_path: Path) -> None:
    file = tmp_path / "pulse.csv"
    file.write_text("seconds,amperes\n1e-9,0\n2e-9,4\n\n4e-9,0\n")
    values = Samples(str(file), amplitude=0.5, delay=1e-9).sample(np.array([0.0, 2.5e-9, 3e-9, 4e-9, 9e-9]))
    np.testing.assert_allclose(values, [0, 1, 2, 1, 0])


def test_samples_of_a_pulse_have_its_highest_frequency(tmp_path: Path) -> None:
    file = tmp_path / "pulse.csv"
    times = np.linspace(0, 3e-9, 600)
    np.savetxt(file, np.stack([times, Ricker(1e9).sample(times)], axis=1), delimiter=",")
    assert Samples(str(file), delay=5e-9).highest_frequency() == pytest.approx(
        Ricker(1e9).highest_frequency(), rel=0.05
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1,2\n\nx,y\n", "got another kind of line 3; correct it."),
        ("1,2\n2,3,4\n", "got another kind of line 2; correct it."),
        ("1,2\n", "got 1 of at least two lines; correct them."),
        ("", "got 0 of at least two lines; correct them."),
        ("1,2\n1,3\n", "got times that do not rise; correct them."),
        ("1,2\n2,nan\n", "got numbers that are not finite; correct them."),
    ],
)
def test_samples_that_cannot_be_meant(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "pulse.csv"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        Samples(str(file)).sample(TIMES)
    assert str(caught.value) == (
        f"Samples are expected in '{file}' as lines 'seconds,value' with rising times; {complaint}"
    )


def test_samples_before_time_0_are_mentioned(tmp_path: Path) -> None:
    """A pulse whose peak is at 0 s, as wavelets of seismic processing: half of it is sent."""
    times = np.arange(-100, 101) * 1e-3
    file = tmp_path / "w.csv"
    np.savetxt(file, np.stack([times, (1 - 9e3 * times**2) * np.exp(-9e3 * times**2 / 2)], axis=1), delimiter=",")
    (said,) = unsent("The source", Samples(str(file)), 1.0, "the time")
    begin = re.search(r"begin at -(\S+) s; add (\S+) s to its delay to send all", said)
    assert begin
    assert begin[1] == begin[2]
    assert 0.02 < float(begin[1]) < 0.05
    assert not list(unsent("The source", Samples(str(file), delay=float(begin[1])), 1.0, "the time"))
    assert "at its strongest after 2 s, but the run ends after 1 s" in " ".join(
        unsent("The source", Samples(str(file), delay=2.0), 1.0, "the time")
    )
