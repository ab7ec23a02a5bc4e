"""Waveforms of sources by the formulas of gprMax: amplitude against time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import e, log, pi, sqrt
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np

from peergrid.errors import UsageError
from peergrid.files import read_plain, reason
from peergrid.gprmax.text import Command, check_names
from peergrid.io.rule import FileName, Finite, Name, Positive
from peergrid.models.waveforms import Doubles, highest, highest_between

LARGEST = 1 << 28  # bytes of a file of samples
Form = Literal[
    "gaussian", "gaussiandot", "gaussiandotnorm", "gaussiandotdot", "gaussiandotdotnorm", "gaussianprime",
    "gaussiandoubleprime", "ricker", "sine", "contsine", "impulse", "gauspulse",
]  # fmt: skip
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True)
class Formula:
    """A waveform by the name of gprMax's formula."""

    kind: ClassVar[str] = "gprmax"
    form: Form
    frequency: Positive
    amplitude: Finite = 1.0

    def pulse(self, dt: float) -> Pulse:
        """The waveform at a time step; an impulse lasts one."""
        return Pulse(self.form, self.amplitude, self.frequency, dt)


@dataclass(frozen=True)
class Column:
    """A waveform from a column of a file with a line of names."""

    command: Command = field(metadata={"place": Command.table})
    kind: ClassVar[str] = "column"
    file: FileName
    name: Name

    def sampled(self, dt: float, steps: int) -> Sampled:
        """The waveform, with samples dt apart if the file has no times. Raises UsageError, one sentence."""
        times, found = columns(self.command, Path(self.file))
        if self.name not in found:
            raise self.command.fault(f"to name one of the columns {', '.join(found)}", f"'{self.name}'", "correct it")
        if times is not None:
            return Sampled(times, found[self.name], self.file)
        values = np.zeros(steps + 1)
        count = min(len(values), len(found[self.name]))
        values[:count] = found[self.name][:count]
        return Sampled(dt * np.arange(steps + 1, dtype=np.float64), values, self.file)


@dataclass(frozen=True)
class Pulse:
    """A waveform by its kind; frequency in Hz, of an impulse dt in seconds."""

    kind: str
    amplitude: float
    frequency: float
    dt: float

    def sample(self, times: Doubles) -> Doubles:
        """Amplitudes at times in seconds."""
        found: Doubles = self.amplitude * self._unit(np.asarray(times, np.float64))
        return found

    def peak(self) -> float:
        """The time at which the pulse is at its strongest, seconds; of a first derivative, when it changes its sign."""
        if self.kind == "impulse":
            return 0.0
        return {"sine": 0.25 / self.frequency, "contsine": 4 / self.frequency}.get(self.kind, self._delay)

    def highest_frequency(self) -> float:
        """The highest significant frequency, Hz; of sines the first zero beside the line; 0 for an impulse, which has
        all.
        """
        if self.kind == "impulse":
            return 0.0
        wide = {"sine": 2 * self.frequency, "contsine": 1.5 * self.frequency}
        return wide.get(self.kind) or highest(self.sample, 2 * self._delay, self.frequency)

    @property
    def _delay(self) -> float:
        """The middle of a pulse, seconds."""
        f = self.frequency
        if self.kind == "gauspulse":
            return sqrt(-log(10 ** (-60 / 20)) / self._width)
        return (sqrt(2) if self._narrow else 1) / f

    @property
    def _narrow(self) -> bool:
        return self.kind in ("gaussiandotdot", "gaussiandotdotnorm", "ricker")

    @property
    def _width(self) -> float:
        """The rate of a Gaussian's fall, 1/s²."""
        f = self.frequency
        if self.kind == "gauspulse":
            return -((pi * f * 0.5) ** 2) / (4 * log(10 ** (-6 / 20)))
        return pi**2 * f**2 if self._narrow else 2 * pi**2 * f**2

    def _unit(self, times: Doubles) -> Doubles:
        f, phase = self.frequency, 2 * pi * self.frequency * times
        if self.kind == "sine":
            return np.where(times * f > 1, 0.0, np.sin(phase))
        if self.kind == "contsine":
            return np.minimum(0.25 * times * f, 1.0) * np.sin(phase)
        if self.kind == "impulse":
            return np.where((times == 0) | (times < self.dt), 1.0, 0.0)
        if self.kind == "gauspulse":
            delay = times - self._delay
            return np.exp(-self._width * delay**2) * np.cos(2 * pi * f * delay)
        return self._gaussian(times)

    def _gaussian(self, times: Doubles) -> Doubles:
        width, delay = self._width, times - self._delay
        pulse = np.exp(-width * delay**2)
        if self.kind == "gaussian":
            return pulse
        if self.kind in ("gaussiandot", "gaussianprime", "gaussiandotnorm"):
            scale = sqrt(e / (2 * width)) if self.kind == "gaussiandotnorm" else 1.0
            return -2 * width * delay * pulse * scale
        second: Doubles = (2 * width * delay**2 - 1) * pulse
        if self.kind in ("gaussiandotdot", "gaussiandoubleprime"):
            return 2 * width * second
        return -second if self.kind == "ricker" else second


@dataclass(frozen=True, eq=False)
class Sampled:
    """A waveform through samples of a file, straight lines between them, zero outside."""

    times: Doubles
    values: Doubles
    file: str

    def sample(self, times: Doubles) -> Doubles:
        """Amplitudes at times in seconds."""
        return np.interp(times, self.times, self.values, left=0.0, right=0.0)

    def peak(self) -> float:
        """The time of the largest sample, seconds."""
        return float(self.times[np.abs(self.values).argmax()])

    def highest_frequency(self) -> float:
        return highest_between(self.times, self.values, self.file)


def columns(command: Command, file: Path) -> tuple[Doubles | None, Mapping[str, Doubles]]:
    """The column `time` of a file (s), if it has one, and its other columns by the names in its first line.

    Raises UsageError, one sentence.
    """
    try:
        lines = [line.split() for line in read_plain(file, LARGEST).decode("utf-8-sig").splitlines()]
        rows = [line for line in lines if line and not line[0].startswith("#")]
        values = np.array([[float(word) for word in row] for row in rows[1:]], np.float64)
    except (OSError, ValueError) as error:
        cause = reason(error) if isinstance(error, OSError) else str(error)
        raise command.fault(
            "to name a file with a line of names and then columns of numbers", f"'{file.name}': {cause}",
            "correct the path or the file",
        ) from None  # fmt: skip
    names = rows[0] if rows else []
    check_names((command, name) for name in names)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] != len(names) or not np.isfinite(values).all():
        raise command.fault(
            "to name a file with a column of at least two finite numbers under each name",
            f"an array of shape {values.shape} under {len(names)} names", "correct the file",
        )  # fmt: skip
    if names[0].lower() != "time":
        return None, dict(zip(names, values.T, strict=True))
    if (np.diff(values[:, 0]) <= 0).any():
        raise UsageError(f"{command.where}: times in '{file.name}' are expected to rise; sort them.")
    return values[:, 0], dict(zip(names[1:], values.T[1:], strict=True))
