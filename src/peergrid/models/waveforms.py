"""Waveforms of sources: amplitude against time, and the highest significant frequency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.files import read_plain, reason
from peergrid.io.rule import LARGEST as MOST
from peergrid.io.rule import FileName, Finite, NotNegative, Positive, Rule, check_numbers

Doubles = NDArray[np.float64]

LARGEST = 1 << 28  # bytes of a file of samples
FINEST = 2_000_000  # most times at which samples of a file are resampled for their spectrum
SIGNIFICANT = 0.01
"""A frequency matters where the spectrum is above this share of its largest value (-40 dB)."""


@dataclass(frozen=True)
class Ricker:
    """The negative, normalised second derivative of a Gaussian; its spectrum peaks at `frequency` (Hz).

    w(t) = (1 - 2 a) exp(-a), a = (π f (t - delay - √2/f))².
    """

    kind: ClassVar[str] = "ricker"
    frequency: Positive
    amplitude: Finite = 1.0
    delay: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)

    def sample(self, times: Doubles) -> Doubles:
        a = (pi * self.frequency * (times - self.delay - sqrt(2) / self.frequency)) ** 2
        return self.amplitude * (1 - 2 * a) * np.exp(-a)

    def peak(self) -> float:
        """The time at which the pulse is at its strongest, seconds."""
        return self.delay + sqrt(2) / self.frequency

    def highest_frequency(self) -> float:
        return highest(self.sample, 2 * sqrt(2) / self.frequency, self.frequency, self.delay)


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian pulse or one of its first two derivatives, each with a largest value of `amplitude`.

    g(t) = exp(-2 (π f (t - delay - 1/f))²).
    """

    kind: ClassVar[str] = "gaussian"
    frequency: Positive
    derivative: Literal[0, 1, 2] = 0
    amplitude: Finite = 1.0
    delay: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)

    def sample(self, times: Doubles) -> Doubles:
        s = 2 * pi * self.frequency * (times - self.delay - 1 / self.frequency)
        pulse = np.exp(-(s**2) / 2)
        shapes = (pulse, -s * pulse * np.exp(0.5), (s**2 - 1) * pulse)
        return self.amplitude * shapes[self.derivative]

    def peak(self) -> float:
        """The time of the pulse's largest value, seconds; of the first derivative, when it changes its sign."""
        return self.delay + 1 / self.frequency

    def highest_frequency(self) -> float:
        return highest(self.sample, 2 / self.frequency, self.frequency, self.delay)


@dataclass(frozen=True)
class Sine:
    """A sine that grows over its first `ramp` periods along a squared sine, then keeps its amplitude.

    Its highest frequency is taken as f (1 + 2 / ramp): the first zero of the ramp's spectrum beside the line.
    """

    kind: ClassVar[str] = "sine"
    frequency: Positive
    ramp: Annotated[float, Rule("a number of periods not below 1", lambda v: v >= 1)] = 3.0
    amplitude: Finite = 1.0
    delay: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)

    def sample(self, times: Doubles) -> Doubles:
        phase = self.frequency * np.maximum(times - self.delay, 0.0)
        envelope = np.sin(0.5 * pi * np.minimum(phase / self.ramp, 1.0)) ** 2
        return self.amplitude * envelope * np.sin(2 * pi * phase)

    def peak(self) -> float:
        """The time at which the sine reaches its full amplitude, seconds."""
        return self.delay + self.ramp / self.frequency

    def highest_frequency(self) -> float:
        return self.frequency * (1 + 2 / self.ramp)


@dataclass(frozen=True)
class Samples:
    """Samples from a CSV file with two columns, seconds and value; interpolated linearly, zero outside.

    A first line that is no pair of numbers is taken as a heading.
    """

    kind: ClassVar[str] = "samples"
    file: FileName
    amplitude: Finite = 1.0
    delay: NotNegative = 0.0

    def sample(self, times: Doubles) -> Doubles:
        known, values = read_samples(Path(self.file))
        shifted = np.asarray(times, dtype=np.float64) - self.delay
        return self.amplitude * np.interp(shifted, known, values, left=0.0, right=0.0)

    def peak(self) -> float:
        """The time of the largest sample, seconds."""
        known, values = read_samples(Path(self.file))
        return self.delay + float(known[np.abs(values).argmax()])

    def begin(self) -> float:
        """The time of the first significant sample, seconds; what is before 0 s is not sent."""
        known, values = read_samples(Path(self.file))
        size = np.abs(values)
        return self.delay + float(known[(size >= SIGNIFICANT * size.max()).argmax()])

    def highest_frequency(self) -> float:
        return highest_between(*read_samples(Path(self.file)), self.file)


Waveform = Ricker | Gaussian | Sine | Samples


@runtime_checkable
class Known(Protocol):
    """A waveform that knows when it is at its strongest, seconds, and its highest significant frequency, Hz."""

    def peak(self) -> float: ...

    def highest_frequency(self) -> float: ...


def read_samples(file: Path) -> tuple[Doubles, Doubles]:
    """Times and values of a CSV file; raises UsageError unless it has two columns with rising times."""
    expected = f"Samples are expected in '{file}' as lines 'seconds,value' with rising times"
    try:
        lines = read_plain(file, LARGEST).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{expected}; it cannot be read: {reason(error)}; correct the path or the file.") from None
    rows = {number: _pair(line) for number, line in enumerate(lines, 1) if line.strip()}
    head = next(iter(rows), 0)
    bad = [number for number, row in rows.items() if row is None and number != head]
    if bad:  # the line itself is not shown: a model may name any file
        raise UsageError(f"{expected}; got another kind of line {bad[0]}; correct it.")
    table = np.array([row for row in rows.values() if row is not None], dtype=np.float64).reshape(-1, 2)
    if len(table) < 2 or not (np.abs(table) <= MOST).all() or (np.diff(table[:, 0]) <= 0).any():
        raise UsageError(f"{expected}; {_complaint(table)}; correct them.")
    return table[:, 0], table[:, 1]


def _complaint(table: Doubles) -> str:
    if len(table) < 2:
        return f"got {len(table)} of at least two lines"
    if not np.isfinite(table).all():
        return "got numbers that are not finite"
    return "got numbers above 1e20" if (np.abs(table) > MOST).any() else "got times that do not rise"


def _pair(line: str) -> tuple[float, float] | None:
    parts = line.split(",")
    try:
        return (float(parts[0]), float(parts[1])) if len(parts) == 2 else None
    except ValueError:
        return None


def highest_between(times: Doubles, values: Doubles, file: str) -> float:
    """The highest significant frequency of straight lines between samples of a file.

    Raises UsageError if some of them lie too close together.
    """
    step = float(np.diff(times).min()) / 2
    if (times[-1] - times[0]) / step > FINEST:
        raise UsageError(
            f"Samples are expected in '{file}' at most {FINEST // 2:,} of their shortest distance in all, got "
            f"{(times[-1] - times[0]) / step / 2:.2g}; leave out what lies too close together."
        )
    return _highest_of(np.interp(np.arange(times[0], times[-1] + step, step), times, values, right=0.0), step)


def highest(sample: Callable[[Doubles], Doubles], duration: float, frequency: float, delay: float = 0.0) -> float:
    """The highest significant frequency of a pulse that lasts `duration` after its delay."""
    step = 1 / (64 * frequency)
    return _highest_of(sample(delay + np.arange(0, duration, step)), step)


def _highest_of(values: Doubles, step: float) -> float:
    """The highest frequency whose spectral amplitude is above `SIGNIFICANT` of the largest."""
    length = 1 << max(12, 3 + int(np.ceil(np.log2(len(values)))))
    spectrum = np.abs(np.fft.rfft(values, length))
    if not spectrum.any():
        return 0.0
    last = np.flatnonzero(spectrum > SIGNIFICANT * spectrum.max())[-1]
    return float(last / (length * step))
