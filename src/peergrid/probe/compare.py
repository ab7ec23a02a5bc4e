"""Differences between two profiles that exceed the noise, and values clearly worse than expected."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources

from peergrid.machine import Gpu, Machine, decode
from peergrid.probe.experiment import Measurement, Scalar
from peergrid.probe.profile import Profile

OUTLIER = 0.1
OF_MEMORY, OF_LINK, OF_PCIE = 0.85, 0.85, 0.8  # what copies reach of a theoretical rate, on every generation known
SHORT_OF_THEORY = 0.2
NEAR_THEORY = "what copies reach of the theoretical rate"


@dataclass(frozen=True, slots=True)
class Difference:
    """A number whose intervals in two profiles do not overlap; `ratio` is now / before."""

    quantity: str
    at: dict[str, Scalar]
    unit: str
    before: float
    now: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected value for some hardware.

    `gpu` is the GPU's name, where '*' stands for any text: 'H200' alone would be in 'GH200' and 'H200 NVL', which
    have other links. `at` are coordinates that must agree; `better` is 'more' or 'less'; a result is flagged when
    it is worse by more than the share `tolerance` and its own uncertainty.
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
class Shortfall:
    """A result that is clearly worse than expected."""

    quantity: str
    at: dict[str, Scalar]
    unit: str
    found: float
    expected: float
    source: str


def differences(now: Profile, before: Profile) -> tuple[Difference, ...]:
    """Every number of both profiles whose intervals do not overlap, in the order of the newer one."""
    return tuple(
        Difference(a.quantity, a.at, a.unit, b.median, a.median, a.median / b.median if b.median else 0.0)
        for a, b in _pairs(now, before)
        if abs(a.median - b.median) > a.uncertainty + b.uncertainty
    )


def compared(now: Profile, before: Profile) -> int:
    """The number of results in both profiles."""
    return sum(1 for _ in _pairs(now, before))


def flags(profile: Profile, table: tuple[Expected, ...] | None = None) -> tuple[Shortfall, ...]:
    """Results clearly worse than known for this hardware, than near its theoretical rates, or than like pairs.

    A number is flagged once, and compared with theory only if no better value is known.
    """
    known = expected(profile.machine) if table is None else table
    found: list[Shortfall] = []
    judged: list[tuple[str, dict[str, Scalar]]] = []
    for item in (*known, *theory(profile)):
        for hit in profile.results(item.quantity):
            if (hit.quantity, hit.at) in judged or not _agrees(hit, item) or not _is_of(hit, item, profile.machine):
                continue
            judged.append((hit.quantity, hit.at))
            if _worse(hit, item):
                found.append(Shortfall(hit.quantity, hit.at, hit.unit, hit.median, item.value, item.source))
    places = [(flag.quantity, flag.at) for flag in found]
    return (*found, *(flag for flag in outliers(profile) if (flag.quantity, flag.at) not in places))


def theory(profile: Profile) -> Iterator[Expected]:
    """The rates that copies in a GPU, to and from the host, and over NVLink should reach, by the machine's data."""
    machine = profile.machine
    sizes = [int(item.number("bytes")) for item in profile.results("host_link_bandwidth")]
    for gpu in machine.gpus:
        inside: dict[str, Scalar] = {"device": gpu.index, "route": "copy engine"}
        yield from _near(gpu, "device_copy_bandwidth", inside, OF_MEMORY * gpu.memory_rate)
        for direction in ("to device", "to host"):
            at: dict[str, Scalar] = {"device": gpu.index, "direction": direction, "memory": "pinned"}
            rate = OF_PCIE * gpu.pcie.rate if gpu.pcie else 0.0
            yield from _near(gpu, "host_link_bandwidth", at | {"bytes": max(sizes, default=0)}, rate)
        for other in [one for one in machine.gpus if one is not gpu]:
            pair: dict[str, Scalar] = {"source": gpu.index, "target": other.index}
            rate = OF_LINK * _link_rate(machine, gpu.index, other.index)
            yield from _near(gpu, "peer_copy_bandwidth", pair | {"route": "copy engine", "ways": 1}, rate)


def _near(gpu: Gpu, quantity: str, at: dict[str, Scalar], rate: float) -> Iterator[Expected]:
    """Nothing if the machine's data lack the rate."""
    if rate:
        yield Expected(gpu.name, quantity, at, rate, "B/s", "more", SHORT_OF_THEORY, NEAR_THEORY)


def _link_rate(machine: Machine, source: int, target: int) -> float:
    """The theoretical rate of the NVLink lines between two GPUs, direct or over a switch; 0 if there are none."""
    direct = sum(link.rate for link in machine.links if (link.source, link.target) == (source, target))
    up, down = (
        sum(link.rate for link in machine.links if (link.source, link.target) == (end, None))
        for end in (source, target)
    )
    return direct or min(up, down)


def outliers(profile: Profile) -> tuple[Shortfall, ...]:
    """Pairs of GPUs clearly slower than the median of all pairs, on machines whose GPUs all hang on a switch.

    This needs no data of the hardware: a link with missing lines is slower than its equals.
    """
    links = profile.machine.links
    if not links or any(link.target is not None for link in links):
        return ()
    groups: dict[tuple[Scalar, ...], list[Measurement]] = {}
    for item in profile.results("peer_copy_bandwidth"):
        groups.setdefault((item.at.get("route", ""), item.at.get("ways", 1)), []).append(item)
    return tuple(flag for group in groups.values() for flag in _slow_ones(group))


def _slow_ones(group: list[Measurement]) -> list[Shortfall]:
    middle = statistics.median(item.median for item in group)
    return [
        Shortfall(item.quantity, item.at, item.unit, item.median, middle, "the median of all pairs")
        for item in group
        if middle - item.median > OUTLIER * middle + item.uncertainty
    ]


def expected(machine: Machine) -> tuple[Expected, ...]:
    """The known values for the GPUs of `machine`; none for a machine without GPUs."""
    text = resources.files("peergrid.probe").joinpath("expected.json").read_text(encoding="utf-8")
    table = decode(dict[str, tuple[Expected, ...]], json.loads(text), "expected.json")
    return tuple(item for item in table["values"] if any(fnmatchcase(gpu.name, item.gpu) for gpu in machine.gpus))


def _agrees(found: Measurement, item: Expected) -> bool:
    return all(found.at.get(key) == value for key, value in item.at.items())


def _is_of(found: Measurement, item: Expected, machine: Machine) -> bool:
    """True if every GPU of a number is of the kind of the expected value; GPU 0 if it names none."""
    named = {found.at[key] for key in ("device", "source", "target") if key in found.at} or {0}
    return all(fnmatchcase(gpu.name, item.gpu) for gpu in machine.gpus if gpu.index in named)


def _worse(found: Measurement, item: Expected) -> bool:
    lack = item.value - found.median if item.better == "more" else found.median - item.value
    return lack > item.tolerance * item.value + found.uncertainty


def _pairs(now: Profile, before: Profile) -> Iterator[tuple[Measurement, Measurement]]:
    older = {key(item): item for item in before.results()}
    for item in now.results():
        if key(item) in older:
            yield item, older[key(item)]


def key(item: Measurement) -> tuple[str, str, tuple[tuple[str, Scalar], ...]]:
    """The identity of a number in any profile."""
    return item.quantity, item.unit, tuple(sorted(item.at.items()))
