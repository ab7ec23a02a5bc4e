"""A test of the uncertainties: how often medians of later runs lie inside the interval of an earlier one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from peergrid.probe.compare import key
from peergrid.probe.experiment import Measurement, Scalar
from peergrid.probe.profile import Profile

ENOUGH = 0.8


@dataclass(frozen=True, slots=True)
class Stability:
    """One quantity over several runs; shares are between 0 and 1.

    Attributes:
        quantity: its name.
        numbers: how many coordinates the first run and at least one later have.
        hold: share of the numbers with at least four of five later medians inside the first interval.
        inside: share of all ordered pairs of runs in which the one's median lies in the other's interval.
        width: median of uncertainty over median.
        moved: the largest distance of a later median from the first, over the first.
    """

    quantity: str
    numbers: int
    hold: float
    inside: float
    width: float
    moved: float


@dataclass(frozen=True, slots=True)
class Strayed:
    """A number that does not hold: the first interval, and the medians of the later runs."""

    quantity: str
    at: dict[str, Scalar]
    first: float
    uncertainty: float
    later: tuple[float, ...]


def stability(runs: Sequence[Profile]) -> tuple[Stability, ...]:
    """Every quantity of the first run beside the same in the later ones."""
    found: dict[str, list[list[Measurement]]] = {}
    for series in _series(runs):
        found.setdefault(series[0].quantity, []).append(series)
    return tuple(_stability(quantity, numbers) for quantity, numbers in found.items())


def strayed(runs: Sequence[Profile]) -> tuple[Strayed, ...]:
    """The numbers that do not hold."""
    return tuple(
        Strayed(first.quantity, first.at, first.median, first.uncertainty, tuple(item.median for item in later))
        for first, *later in _series(runs)
        if not _holds([first, *later])
    )


def _series(runs: Sequence[Profile]) -> list[list[Measurement]]:
    """Each number of the first run with its like in the later ones, in the order of the runs."""
    tables = [{key(item): item for item in run.results()} for run in runs]
    series = [[table[name] for table in tables if name in table] for name in tables[0]]
    return [items for items in series if len(items) > 1]


def _stability(quantity: str, numbers: list[list[Measurement]]) -> Stability:
    pairs = [_inside(a, b) for series in numbers for a, b in permutations(series, 2)]
    widths = [series[0].uncertainty / abs(series[0].median) for series in numbers if series[0].median]
    moved = [abs(b.median / a.median - 1) for a, *later in numbers for b in later if a.median]
    return Stability(
        quantity,
        len(numbers),
        statistics.mean(_holds(series) for series in numbers),
        statistics.mean(pairs),
        statistics.median(widths or [0.0]),
        max(moved, default=0.0),
    )


def _holds(series: Sequence[Measurement]) -> bool:
    first, *later = series
    return statistics.mean(_inside(first, item) for item in later) >= ENOUGH


def _inside(earlier: Measurement, later: Measurement) -> bool:
    low, high = earlier.interval
    return low <= later.median <= high
