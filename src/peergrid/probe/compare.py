"""What differs between two profiles by more than the noise, and what is clearly below its expected value."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from peergrid.machine import Machine, decode
from peergrid.probe.experiment import Result, Scalar
from peergrid.probe.profile import Profile

OUTLIER = 0.1


@dataclass(frozen=True, slots=True)
class Difference:
    """One number of two profiles whose intervals do not meet; `ratio` is now / before."""

    quantity: str
    at: dict[str, Scalar]
    unit: str
    before: float
    now: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Expected:
    """A value known for some hardware.

    `gpu` is a part of the GPU's name; `at` are coordinates that must agree; `better` is 'more' or 'less';
    a result is flagged when it is worse by more than the share `tolerance` and its own uncertainty.
    """

    gpu: str
    quantity: str
    at: dict[str, Scalar]
    value: float
    unit: str
    better: str
    tolerance: float
    source: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A result that is clearly worse than expected."""

    quantity: str
    at: dict[str, Scalar]
    unit: str
    found: float
    expected: float
    source: str


def differences(now: Profile, before: Profile) -> tuple[Difference, ...]:
    """Every number of both profiles whose intervals lie apart, in the order of the newer one."""
    return tuple(
        Difference(a.quantity, a.at, a.unit, b.median, a.median, a.median / b.median if b.median else 0.0)
        for a, b in _pairs(now, before)
        if abs(a.median - b.median) > a.uncertainty + b.uncertainty
    )


def compared(now: Profile, before: Profile) -> int:
    """How many numbers both profiles have."""
    return sum(1 for _ in _pairs(now, before))


def flags(profile: Profile, table: tuple[Expected, ...] | None = None) -> tuple[Flag, ...]:
    """Results that are clearly worse than the values known for this hardware, or than those of like pairs."""
    known = expected(profile.machine) if table is None else table
    found = tuple(
        Flag(hit.quantity, hit.at, hit.unit, hit.median, item.value, item.source)
        for item in known
        for hit in profile.results(item.quantity)
        if _agrees(hit, item) and _worse(hit, item)
    )
    places = [(flag.quantity, flag.at) for flag in found]
    return found + tuple(flag for flag in outliers(profile) if (flag.quantity, flag.at) not in places)


def outliers(profile: Profile) -> tuple[Flag, ...]:
    """Pairs of GPUs clearly slower than the median of all pairs, on machines whose GPUs all hang on a switch.

    This needs no knowledge of the hardware: a link that lost lines shows beside its equals.
    """
    links = profile.machine.links
    if not links or any(link.target is not None for link in links):
        return ()
    groups: dict[tuple[Scalar, ...], list[Result]] = {}
    for item in profile.results("peer_copy_bandwidth"):
        groups.setdefault((item.at.get("route", ""), item.at.get("ways", 1)), []).append(item)
    return tuple(flag for group in groups.values() for flag in _slow_ones(group))


def _slow_ones(group: list[Result]) -> list[Flag]:
    middle = statistics.median(item.median for item in group)
    return [
        Flag(item.quantity, item.at, item.unit, item.median, middle, "the median of all pairs")
        for item in group
        if middle - item.median > OUTLIER * middle + item.uncertainty
    ]


def expected(machine: Machine) -> tuple[Expected, ...]:
    """The known values for the GPUs of `machine`; none for a machine without GPUs."""
    text = resources.files("peergrid.probe").joinpath("expected.json").read_text(encoding="utf-8")
    names = " ".join(gpu.name for gpu in machine.gpus)
    table = decode(dict[str, tuple[Expected, ...]], json.loads(text), "expected.json")
    return tuple(item for item in table["values"] if item.gpu in names)


def _agrees(found: Result, item: Expected) -> bool:
    return all(found.at.get(key) == value for key, value in item.at.items())


def _worse(found: Result, item: Expected) -> bool:
    lack = item.value - found.median if item.better == "more" else found.median - item.value
    return lack > item.tolerance * item.value + found.uncertainty


def _pairs(now: Profile, before: Profile) -> Iterator[tuple[Result, Result]]:
    older = {key(item): item for item in before.results()}
    for item in now.results():
        if key(item) in older:
            yield item, older[key(item)]


def key(item: Result) -> tuple[str, str, tuple[tuple[str, Scalar], ...]]:
    """What makes a number the same in two profiles."""
    return item.quantity, item.unit, tuple(sorted(item.at.items()))
