"""The consequences of each group's numbers for a program on this machine, in two sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from peergrid.machine.units import quantity, size
from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import Profile
from peergrid.report.glance import SHAPE, barrier_by_host, steady, threads, widest_barrier

Say = Callable[[Profile], str]


def follows(profile: Profile, group: str) -> str:
    """The consequences for a program from one group, in two sentences; a third where numbers are too uncertain."""
    steady_ones, others = steady(profile)
    quantities = {item.quantity for outcome in profile.probes if outcome.group == group for item in outcome.results}
    unsteady = [item for item in others if item.quantity in quantities]
    return SENTENCES[group](steady_ones) + (_unsteady(unsteady) if unsteady else "")


def _unsteady(found: Sequence[Measurement]) -> str:
    worst = max(found, key=lambda item: item.uncertainty / abs(item.median or 1e-300))
    numbers = f"{len(found)} numbers of this group are" if len(found) > 1 else "One number of this group is"
    return (
        f" {numbers} uncertain by more than half, such as {worst.quantity} at {_show(worst)} ± "
        f"{quantity(worst.uncertainty, worst.unit)}: nothing is concluded from that; measure again on a quiet machine."
    )


def _host(profile: Profile) -> str:
    copies = sorted(profile.results("host_copy_bandwidth"), key=lambda item: item.median)
    flag = next(profile.results("host_flag_latency"), None)
    if not copies:
        return _no_numbers("The host was not measured", "host")
    best = copies[-1]
    first = (
        f"Main memory moves at most {_show(best)} ({threads(best)} at once): one pass on virtual devices updates at "
        "most that rate over the bytes per cell, in cells per second."
    )
    if flag is None:
        return first + " The cost of a flag between threads was not measured, so small steps cannot be predicted."
    return (
        first
        + f" A flag takes {_show(flag)} from thread to thread: it dominates steps shorter than some tens of these."
    )


def _links(profile: Profile) -> str:
    pairs = [item for item in profile.results("peer_copy_bandwidth") if item.at.get("ways") == 1]
    engine = [item for item in pairs if item.at.get("route") == "copy engine"]
    stores = [item for item in pairs if item.at.get("route") == "store"]
    if not engine:
        return _no_numbers("No links between GPUs were measured", "links")
    slow, fast = min(engine, key=_median), max(engine, key=_median)
    even = fast.median < 1.1 * slow.median
    first = (
        f"All pairs are alike at {_show(fast)}, so the order of the GPUs in a split does not matter."
        if even
        else f"The best pair moves {_show(fast)} and the worst {_show(slow)} (GPU {slow.at.get('source')} to "
        f"{slow.at.get('target')}), so neighbours in the grid should be neighbours on the links."
    )
    messages = sorted(
        (item for item in profile.results("peer_message_time") if item.at.get("route") == "copy engine"),
        key=lambda item: item.number("bytes"),
    )
    if not messages:
        return first + " Small messages were not measured, so the depth of halos has to be tried."
    half = messages[0].median * fast.median
    second = (
        f" A copy takes {_show(messages[0])} however short it is: halos below {size(half)} pay mostly this, and "
        f"are better stored by the kernel itself{' at ' + _show(max(stores, key=_median)) if stores else ''}"
    )
    return first + second + _best_order(profile) + "."


def _best_order(profile: Profile) -> str:
    """The fastest order of a halo exchange over the most GPUs, with more than one to choose from."""
    found = list(profile.results("halo_exchange_bandwidth"))
    most = max((int(item.number("devices")) for item in found), default=0)
    orders = sorted((item for item in found if item.at.get("devices") == most), key=_median)
    if len(orders) < 2:
        return ""
    best, waits = orders[-1], orders[-1].at.get("separated") == "yes"
    return (
        f"; large ones go '{best.at.get('pattern')}' {'with' if waits else 'without'} a wait between the stages "
        f"({_show(best)} over {most} GPUs, the slowest order {_show(orders[0])})"
    )


def _memory(profile: Profile) -> str:
    own = profile.find("load_latency", {"place": "own", "modifier": "cv"})
    remote = profile.find("load_latency", {"place": "remote", "modifier": "cv"})
    hide = next(profile.results("loads_to_hide"), None)
    if own is None or remote is None:
        return _no_numbers("The latency of GPU memory was not measured", "memory")
    first = (
        f"A dependent load takes {_show(own)} from own memory and {_show(remote)} from a remote one "
        f"({remote.median / own.median:.1f} times), so remote data is read in bulk or not at all."
    )
    if hide is None:
        return first + " How many loads in flight hide this was not measured."
    loads = f" With {math.ceil(hide.median)} in flight it costs no more than a single own one, so such kernels unroll"
    return first + loads + _caches(profile) + "."


def _caches(profile: Profile) -> str:
    """The caches that hold remote data, and hence the cost of a second read."""
    cached = {str(item.at.get("level")): bool(item.median) for item in profile.results("remote_cached")}
    if not cached:
        return ""
    if cached.get("L2 of the reader"):
        return "; the reader's L2 keeps what it read"
    if cached.get("L1 of the reader"):
        return "; only the L1 of the reader keeps what it read (ld.ca), so what several blocks need is copied once"
    return "; the reader keeps nothing of it, so what is needed twice is copied once"


def _order(profile: Profile) -> str:
    bare = [item for item in profile.results("stale_reads") if item.at.get("fence") == "without"]
    fenced = [item for item in profile.results("stale_reads") if item.at.get("fence") == "with"]
    if not fenced:
        return _no_numbers("The order of remote writes was not measured", "'atomics and order'")
    seen = sum(item.median for item in bare)
    first = (
        "Without fences a flag overtook its data, so every signal needs release and acquire."
        if seen
        else "No stale read was seen even without fences, but nothing promises that, so signals keep them."
    )
    bad = sum(item.median for item in fenced)
    second = (
        " With release and acquire no stale read was seen: flags in memory are a sound signal between these GPUs"
        if not bad
        else f" Even with fences {bad:.0f} stale reads were seen: flags must not be used on this machine"
    )
    return first + second + _counters(profile) + "."


def _counters(profile: Profile) -> str:
    """The cost of an addition to a word of another GPU, if that is slower."""
    own, remote = (
        profile.find("remote_atomic_rate", {"place": place, "words": "one word"}) for place in ("own", "remote")
    )
    if own is None or remote is None or remote.median > own.median:
        return ""
    return (
        f"; counters are best kept per GPU, since one word takes {_show(own)} from its GPU and {_show(remote)} remotely"
    )


def _synchronisation(profile: Profile) -> str:
    launch = profile.find("launch_overhead", {"how": "plain"})
    grid = profile.find("grid_barrier", SHAPE)
    several = widest_barrier(profile)
    if launch is None or grid is None:
        return _no_numbers("Launches and barriers of GPUs were not measured", "synchronisation")
    cheaper = "a new kernel per step" if launch.median < grid.median else "one kernel for all steps"
    first = f"One more launch costs {_show(launch)} and a grid barrier {_show(grid)}: {cheaper} is cheaper on one GPU."
    if several is None:
        return first + " A barrier over several GPUs was not measured."
    host = barrier_by_host(profile, several)
    beside = f" and {_show(host)} by {host.at.get('by', 'the host')}" if host else ""
    return first + (
        f" A barrier over {several.at.get('devices')} GPUs costs {_show(several)} in memory{beside}, so steps much "
        "shorter than that should exchange deeper halos less often."
    )


def _model(profile: Profile) -> str:
    predicted = profile.find("switch_point", {"scenario": "32 → 1024 threads", "way": "predicted"})
    measured = profile.find("switch_point", {"scenario": "32 → 1024 threads", "way": "measured"})
    if predicted is None:
        return _no_numbers("The concurrency of shared memory was not measured", "model")
    first = (
        f"Sums of less than about {size(predicted.median)} in shared memory are left to one warp: a block of 1024 "
        "threads pays more for its barriers than it gains."
    )
    if measured is None:
        return first + " The switching point itself was not measured, so this is the model's prediction alone."
    ratio = measured.median / predicted.median if predicted.median else 0.0
    trust = "a fair guide" if 0.5 < ratio < 2 else "no guide"
    return first + (
        f" Measured, the block wins from {size(measured.median)} on, {ratio:.1f} times the prediction: the model is "
        f"{trust} where nothing was measured."
    )


def _median(item: Measurement) -> float:
    return item.median


def _show(item: Measurement) -> str:
    return quantity(item.median, item.unit)


def _no_numbers(what: str, name: str) -> str:
    where = "" if name == "host" else " on a machine with GPUs"
    return f"{what}, so nothing follows from this group yet. Run peergrid probe {name}{where}."


SENTENCES: dict[str, Say] = {
    "host": _host,
    "links": _links,
    "memory": _memory,
    "atomics and order": _order,
    "synchronisation": _synchronisation,
    "model": _model,
}
