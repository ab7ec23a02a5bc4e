"""Waveforms of sources by the formulas of gprMax: amplitude against time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import e, log, pi, sqrt

import numpy as np

from peergrid.errors import UsageError
from peergrid.gprmax.items import SampledWaves
from peergrid.io.files import read_plain, reason
from peergrid.models.waveforms import Doubles

LARGEST = 1 << 28  # bytes of a file of samples


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

    def _unit(self, times: Doubles) -> Doubles:
        f, phase = self.frequency, 2 * pi * self.frequency * times
        if self.kind == "sine":
            return np.where(times * f > 1, 0.0, np.sin(phase))
        if self.kind == "contsine":
            return np.minimum(0.25 * times * f, 1.0) * np.sin(phase)
        if self.kind == "impulse":
            return np.where((times == 0) | (times < self.dt), 1.0, 0.0)
        if self.kind == "gauspulse":
            width = -((pi * f * 0.5) ** 2) / (4 * log(10 ** (-6 / 20)))
            delay = times - sqrt(-log(10 ** (-60 / 20)) / width)
            return np.exp(-width * delay**2) * np.cos(2 * pi * f * delay)
        return self._gaussian(times)

    def _gaussian(self, times: Doubles) -> Doubles:
        f = self.frequency
        narrow = self.kind in ("gaussiandotdot", "gaussiandotdotnorm", "ricker")
        width = pi**2 * f**2 if narrow else 2 * pi**2 * f**2
        delay = times - (sqrt(2) if narrow else 1) / f
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
    """A waveform through samples, straight lines between them, zero outside."""

    times: Doubles
    values: Doubles

    def sample(self, times: Doubles) -> Doubles:
        """Amplitudes at times in seconds."""
        return np.interp(times, self.times, self.values, left=0.0, right=0.0)


def sampled(item: SampledWaves, dt: float, steps: int) -> Mapping[str, Sampled]:
    """The waveforms of a file: names in the first line, a column of values for each; with a column `time`, seconds."""
    try:
        lines = [line.split() for line in read_plain(item.file, LARGEST).decode("utf-8-sig").splitlines()]
        rows = [line for line in lines if line and not line[0].startswith("#")]
        values = np.array([[float(word) for word in row] for row in rows[1:]], np.float64)
    except (OSError, ValueError) as error:
        cause = reason(error) if isinstance(error, OSError) else str(error)
        raise item.command.fault(
            "to name a file with a line of names and then columns of numbers", f"'{item.file.name}': {cause}",
            "correct the path or the file",
        ) from None  # fmt: skip
    names = rows[0] if rows else []
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] != len(names) or not np.isfinite(values).all():
        raise item.command.fault(
            "to name a file with a column of at least two finite numbers under each name",
            f"an array of shape {values.shape} under {len(names)} names", "correct the file",
        )  # fmt: skip
    times: Doubles = dt * np.arange(steps + 1, dtype=np.float64)
    if names[0].lower() == "time":
        times, values, names = values[:, 0], values[:, 1:], names[1:]
        if (np.diff(times) <= 0).any():
            raise UsageError(f"{item.command.where}: times in '{item.file.name}' are expected to rise; sort them.")
    count = min(len(times), len(values))
    columns = np.zeros((len(times), len(names)))
    columns[:count] = values[:count]
    return {name: Sampled(times, columns[:, k]) for k, name in enumerate(names)}
