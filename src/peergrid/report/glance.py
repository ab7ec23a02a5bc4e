"""The key figures of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from peergrid.machine.units import count, digits, prefixed, quantity, scale
from peergrid.probe.experiment import Measurement, Scalar
from peergrid.probe.profile import Profile

MOST = 0.5  # of a median: less certain numbers allow no conclusion
SHAPE: dict[str, Scalar] = {"blocks_per_multiprocessor": 1, "threads": 256}


@dataclass(frozen=True, slots=True)
class Key:
    """A key figure: its name, the number, and its conditions in a few words."""

    what: str
    number: str
    note: str


def glance(profile: Profile) -> list[Key]:
    """The figures that this profile has, in the order of the pipeline: memory, links, latency, synchronisation."""
    steady_ones, _ = steady(profile)
    return [key for make in FIGURES for key in make(steady_ones)]


def steady(profile: Profile) -> tuple[Profile, tuple[Measurement, ...]]:
    """The profile with its certain numbers, and the uncertain ones.

    The uncertainty of the latter is larger than half of their median. Counts are certain.
    """
    kept = [
        replace(outcome, results=tuple(item for item in outcome.results if _holds(item))) for outcome in profile.probes
    ]
    others = tuple(item for item in profile.results() if not _holds(item))
    return replace(profile, probes=tuple(kept)), others


def _holds(item: Measurement) -> bool:
    return not item.unit or item.uncertainty <= MOST * abs(item.median)


def _range(what: str, found: Iterable[Measurement], note: str) -> list[Key]:
    """The lowest and the highest of several numbers; one where they agree to a hundredth."""
    medians = sorted(((item.median, item.unit) for item in found), key=lambda pair: pair[0])
    if not medians:
        return []
    (low, unit), (high, _) = medians[0], medians[-1]
    if high <= 1.01 * low:
        return [Key(what, quantity(high, unit), note)]
    factor, prefix = scale(high)
    return [Key(what, f"{digits(low / factor)}–{digits(high / factor)} {prefixed(prefix, unit)}", note)]


def threads(item: Measurement) -> str:
    """'1 thread', '64 threads'."""
    return f"{item.number('threads'):.0f} thread{'s' * (item.number('threads') != 1)}"


def _key(what: str, found: Measurement | None, note: str) -> list[Key]:
    return [Key(what, quantity(found.median, found.unit), note)] if found is not None else []


def _where(profile: Profile, quantity_: str, **at: Scalar) -> list[Measurement]:
    return [item for item in profile.results(quantity_) if all(item.at.get(key) == value for key, value in at.items())]


def _gpu_memory(profile: Profile) -> list[Key]:
    copies = _where(profile, "device_copy_bandwidth", route="copy engine")
    return _range("GPU memory", copies, "copy in one GPU, read plus written")


def _links(profile: Profile) -> list[Key]:
    pairs = {ways: _where(profile, "peer_copy_bandwidth", route="copy engine", ways=ways) for ways in (1, 2)}
    host = _where(profile, "peer_copy_bandwidth", route="host", ways=1)
    return [
        *_range("GPU to GPU", pairs[1], f"one way, {len(pairs[1])} pairs"),
        *_range("GPU to GPU, both ways", pairs[2], "sum of the two"),
        *_range("GPU to GPU by the host", host, "without peer access"),
    ]


def _host_link(profile: Profile) -> list[Key]:
    found = _where(profile, "host_link_bandwidth", direction="to device", memory="pinned")
    largest = max((int(item.number("bytes")) for item in found), default=0)
    return _range("Host to GPU", [item for item in found if item.at.get("bytes") == largest], "pinned memory")


def _loads(profile: Profile) -> list[Key]:
    own, remote = (profile.find("load_latency", {"place": place, "modifier": "cv"}) for place in ("own", "remote"))
    return [*_key("Own load", own, "dependent, not cached"), *_key("Remote load", remote, "dependent, not cached")]


def _message(profile: Profile) -> list[Key]:
    found = _where(profile, "peer_message_time", route="copy engine")
    least = min(found, key=lambda item: item.number("bytes"), default=None)
    return _key("Shortest peer copy", least, f"{least.at.get('bytes')} bytes, by copy engine" if least else "")


def _launch(profile: Profile) -> list[Key]:
    return _key("One more launch", profile.find("launch_overhead", {"how": "plain"}), "by kernel fusion")


def widest_barrier(profile: Profile) -> Measurement | None:
    """The barrier in memory over the most GPUs, two at least, in the shape that all figures share."""
    several = [item for item in _where(profile, "device_barrier", **SHAPE) if item.number("devices") > 1]
    return max(several, key=lambda item: item.number("devices"), default=None)


def barrier_by_host(profile: Profile, memory: Measurement | None) -> Measurement | None:
    """The cheapest barrier without a kernel that waits, over as many GPUs as the one in memory."""
    count = memory.number("devices") if memory else 0
    found = [item for item in profile.results("host_side_barrier") if item.number("devices") == count]
    return min(found, key=lambda item: item.median, default=None)


def _barriers(profile: Profile) -> list[Key]:
    widest = widest_barrier(profile)
    host = barrier_by_host(profile, widest)
    return [
        *_key("Grid barrier", profile.find("grid_barrier", SHAPE), "1 block of 256 threads per multiprocessor"),
        *_key(f"Barrier of {widest.at['devices']} GPUs" if widest else "", widest, "in memory, same shape"),
        *_key("The same by the host", host, f"{host.at.get('by', 'one thread')}: launch and wait" if host else ""),
    ]


def _order(profile: Profile) -> list[Key]:
    stale, tries = (
        sum(item.median for item in _where(profile, name, fence="with")) for name in ("stale_reads", "order_tries")
    )
    if not tries:
        return []
    return [Key("Stale reads with fences", count(stale), f"of {count(tries)} words")]


def _host(profile: Profile) -> list[Key]:
    best = max(profile.results("host_copy_bandwidth"), key=lambda item: item.median, default=None)
    barriers = _where(profile, "host_barrier", kind="spin")
    widest = max(barriers, key=lambda item: item.number("threads"), default=None)
    return [
        *_key("Main memory", best, f"copy by {threads(best)}" if best else ""),
        *_key("Barrier of threads", widest, f"{threads(widest)}, spinning" if widest else ""),
    ]


FIGURES: tuple[Callable[[Profile], list[Key]], ...] = (
    _gpu_memory,
    _links,
    _host_link,
    _message,
    _loads,
    _launch,
    _barriers,
    _order,
    _host,
)
