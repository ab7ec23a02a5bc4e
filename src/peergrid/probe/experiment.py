"""The interface of experiments: what each measures, its method, and numbers with their uncertainty."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Scalar = int | float | str
At = dict[str, Scalar]
FLOOR = 0.01
CENTRAL = 0.9


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number of an experiment.

    Attributes:
        quantity: the name that programs look up, such as 'peer_copy_bandwidth'.
        unit: 'B/s', 's', 'cycles', …; an empty string for a plain ratio or count.
        at: the coordinates of the number: devices, sizes, variants.
        median: of the samples.
        spread: width of the central 90 % of the samples.
        uncertainty: half the width of the interval in which the median of another run is expected.
        samples: what was measured, in the order of measuring.
    """

    quantity: str
    unit: str
    at: dict[str, Scalar]
    median: float
    spread: float
    uncertainty: float
    samples: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """The interval in which the median of another run is expected."""
        return self.median - self.uncertainty, self.median + self.uncertainty

    def number(self, key: str) -> float:
        """A coordinate as a number; 0 where there is none, or where a file holds something else."""
        value = self.at.get(key, 0)
        return float(value) if not isinstance(value, str) and abs(value) < 1e30 else 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """An experiment.

    Attributes:
        name: what a user types.
        group: links, memory, atomics and order, synchronisation, model, or host.
        title: one line that says what it measures.
        unit: the unit of its main quantity.
        method: how it measures, in two or three sentences.
        run: yields the results, and a `Lack` for each part that the machine cannot give; gets the bench, raises
            `Impossible` where the machine can give none.
        gpus: how many GPUs it needs.
    """

    name: str
    group: str
    title: str
    unit: str
    method: str
    run: Callable[[Bench], Iterable[Measurement | Lack]]
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Bench:
    """The resources of an experiment: its time, and the devices.

    `devices` is a `peergrid.probe.cuda.devices.Gpus` on a machine with GPUs and None without.
    """

    quick: bool = False
    devices: Any = field(default=None, compare=False)

    def choose(self, quick: int, full: int) -> int:
        """A count of samples or repeats for the available time."""
        return quick if self.quick else full


class Impossible(Exception):
    """This machine cannot give these numbers; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A part of an experiment that this machine cannot give: 'what: why'."""

    what: str


def result(
    quantity: str,
    unit: str,
    samples: Sequence[float],
    at: Mapping[str, Scalar] | None = None,
    floor: float = FLOOR,
) -> Measurement:
    """Condense samples into a number with its spread and uncertainty.

    The uncertainty is the larger tail of the central 90 % and, added in quadrature, `floor`: the observed variation of
    such measurements between runs, as a share of the median.

    Raises:
        ValueError: there are no samples, or one is not a finite number.
    """
    if not samples or not all(math.isfinite(value) for value in samples):
        got = "none" if not samples else "one that is not finite"
        raise ValueError(f"'{quantity}' needs finite samples, but got {got}: measure it again.")
    ordered = sorted(samples)
    median = statistics.median(ordered)
    low, high = quantile(ordered, (1 - CENTRAL) / 2), quantile(ordered, (1 + CENTRAL) / 2)
    tail = max(high - median, median - low)
    uncertainty = math.hypot(tail, floor * abs(median))
    values = tuple(float(value) for value in samples)
    return Measurement(quantity, unit, dict(at or {}), float(median), float(high - low), float(uncertainty), values)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted samples lie, interpolated linearly."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def differences(longer: Sequence[float], shorter: Sequence[float], repeats: int, fewer: int) -> tuple[float, ...]:
    """Cost of one repeat from runs with `repeats` and with `fewer` of them, sample by sample.

    Everything that does not depend on the repeats cancels: L. Zhang, M. Wahib, H. Zhang and S. Matsuoka, "A
    Study of Single and Multi-device Synchronization Methods in Nvidia GPUs", equation 7.
    """
    return tuple((a - b) / (repeats - fewer) for a, b in zip(longer, shorter, strict=True))


def deviation_of_difference(longer: Sequence[float], shorter: Sequence[float], repeats: int, fewer: int) -> float:
    """Standard deviation of `differences` for independent runs: equation 8 of the same study."""
    return math.hypot(statistics.stdev(longer), statistics.stdev(shorter)) / (repeats - fewer)


def fusion_overhead(many_short: float, few_long: float, launches: int, units: int) -> float:
    """Launch overhead by kernel fusion, equation 6 of the same study.

    Args:
        many_short: seconds of `launches` launches, each waiting `units` units.
        few_long: seconds of `units` launches, each waiting `launches` units.
    """
    return (many_short - few_long) / (launches - units)
