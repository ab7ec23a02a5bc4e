"""The number of independent loads, or warps, that hide a remote load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from peergrid.probe.cuda.chase import chain
from peergrid.probe.cuda.devices import Array, Gpus, LoadedKernel, Stream, f32, u32, u64
from peergrid.probe.cuda.timing import Desk, Gate
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

KINDS = (1, 2, 4, 8, 16, 32)
LINKS, STRIDE, STEPS = 4096, 4096, 256
SUM = 16  # additions that a kernel knows as one piece
BESIDE = tuple(SUM * count for count in (0, 1, 2, 4, 8, 16, 24, 32, 48, 64))
DISTANCE = 16  # loads that a prefetch is ahead
SHARES = (0, 1, 2, 5, 10, 15, 20, 30, 50, 100)  # hundredths of all pieces that are read
MIXED = 1 << 30  # bytes


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Cycles per load against chains in one thread and against warps, own and remote; then who hides what."""
    devices: Gpus = bench.devices
    owners = {"own": 0, "remote": 1} if (0, 1) in devices.peers else {"own": 0}
    times: dict[tuple[str, str, int], float] = {}
    for place, owner in owners.items():
        with devices.scope() as scope:
            base = scope.memory(owner, LINKS * STRIDE)
            words = chain(base, LINKS, STRIDE)
            devices.put(owner, base, words)
            desk = Desk.make(scope)
            for by in ("instructions", "warps"):
                for independent in KINDS:
                    _one(desk, by, independent, words)  # brings the chains into the owner's L2
                    each = [_one(desk, by, independent, words) for _ in range(bench.choose(3, 9))]
                    at = {"place": place, "by": by, "independent": independent}
                    found = result("load_time", "cycles", each, at, floor=0.03)
                    times[place, by, independent] = found.median
                    yield found
    yield from _beside(bench, owners)
    yield from _ahead(bench, owners)
    if "remote" not in owners:
        yield Lack("remote loads: GPU 0 cannot reach the memory of a GPU 1")
        return
    yield from _hidden(times)
    yield from _shares(bench)


def _one(desk: Desk, by: str, independent: int, words: Array) -> float:
    """Cycles per load with so many independent chains, each started at another place of the cycle."""
    starts = np.ascontiguousarray(words[:: STRIDE // 8][np.arange(independent) * (LINKS // independent)])
    desk.devices.put(0, desk.sink, starts)
    name, block = ("warps", 32 * independent) if by == "warps" else (f"chains_{independent}", 1)
    kernel = desk.devices.kernel(0, "chase", name)
    desk.run(kernel, 1, block, u64(desk.sink), u32(STEPS), u64(desk.out))
    return float(desk.read()[0]) / (STEPS * independent)


def _hidden(times: Mapping[tuple[str, str, int], float]) -> Iterator[Measurement | Lack]:
    """The number in flight at which a remote load costs no more than one dependent own load."""
    for by in ("instructions", "warps"):
        needed = crossing(KINDS, [times["remote", by, count] for count in KINDS], times["own", by, 1])
        if math.isfinite(needed):
            yield result("loads_to_hide", "", [needed], {"by": by}, floor=0.05)
        else:
            yield Lack(f"loads that hide a remote one by {by}: {KINDS[-1]} in flight do not")


def _beside(bench: Bench, owners: Mapping[str, int]) -> Iterator[Measurement]:
    """Cycles of a step with one load and own additions beside it; then those that a remote load leaves free."""
    devices: Gpus = bench.devices
    steps: dict[str, list[float]] = {}
    for place, owner in ({"none": 0} | dict(owners)).items():
        with devices.scope() as scope:
            base, desk = scope.memory(owner, LINKS * STRIDE), Desk.make(scope)
            devices.put(owner, base, chain(base, LINKS, STRIDE))
            kernel = devices.kernel(0, "chase", "beside_nothing" if place == "none" else "beside_load")
            for sums in BESIDE:
                each = [
                    _step(desk, kernel, u64(base), u32(STEPS), u32(sums // SUM), f32(1.0))
                    for _ in range(bench.choose(3, 9) + 1)
                ][1:]
                found = result("beside_time", "cycles", each, {"load": place, "additions": sums}, floor=0.03)
                steps.setdefault(place, []).append(found.median)
                yield found
    for place in owners:
        share = [1 - (both - own) / steps[place][0] for both, own in zip(steps[place], steps["none"], strict=True)]
        for sums, hidden in zip(BESIDE, share, strict=True):
            yield result("load_hidden", "", [hidden], {"load": place, "additions": sums}, floor=0.05)


def _step(desk: Desk, kernel: LoadedKernel, *arguments: Any) -> float:
    """Cycles per step of a kernel of one thread."""
    desk.run(kernel, 1, 1, *arguments, u64(desk.out))
    return float(desk.read()[0]) / STEPS


def _ahead(bench: Bench, owners: Mapping[str, int]) -> Iterator[Measurement]:
    """Cycles of a load that is asked for some places ahead, into either cache, or not."""
    devices: Gpus = bench.devices
    for place, owner in owners.items():
        with devices.scope() as scope:
            base, desk = scope.words(owner, LINKS * STRIDE // 4), Desk.make(scope)
            for level, name in {"none": "nothing", "L1": "l1", "L2": "l2"}.items():
                kernel = devices.kernel(0, "chase", f"ahead_{name}")
                each = []
                for at in range(bench.choose(3, 9) + 1):  # places that no sample before has read
                    first = base + at * STEPS * STRIDE % (LINKS * STRIDE)
                    each.append(_step(desk, kernel, u64(first), u32(STEPS), u32(STRIDE), u32(DISTANCE)))
                yield result("prefetched_load", "cycles", each[1:], {"place": place, "into": level}, floor=0.05)


def _shares(bench: Bench) -> Iterator[Measurement]:
    """Bytes read per second by all multiprocessors when a share of the accesses is remote."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        own, remote, sink = scope.memory(0, MIXED), scope.memory(1, MIXED), scope.words(0, 1)
        gate, stream, kernel = Gate.make(scope, [0]), scope.stream(0), devices.kernel(0, "copy", "mixed")
        grid = devices.attribute("MULTIPROCESSOR_COUNT", 0) * 4
        for share in SHARES:
            place = u64(own), u64(remote), u64(MIXED // 16), u32(share), u64(sink)

            def work(queue: Stream, place: tuple[Any, ...] = place) -> None:
                kernel(queue, grid, 512, *place)

            rates = [MIXED / s for (s,) in gate.samples([(stream, work)], bench.choose(3, 7))]
            yield result("mixed_bandwidth", "B/s", rates, {"remote": share}, floor=0.03)


def crossing(counts: Sequence[int], costs: Sequence[float], goal: float) -> float:
    """The count at which falling costs reach the goal, by straight lines on logarithmic axes; inf if nowhere."""
    if costs[0] <= goal:
        return float(counts[0])
    for at in range(1, len(counts)):
        if costs[at] <= goal:
            share = math.log(costs[at - 1] / goal) / math.log(costs[at - 1] / costs[at])
            return float(counts[at - 1] * (counts[at] / counts[at - 1]) ** share)
    return math.inf


PROBE = Probe(
    name="hiding",
    group="memory",
    title="Remote loads hidden: by loads in flight, by own arithmetic, by other warps, by prefetching",
    unit="cycles",
    method=(
        "Independent chains of uncached loads (cv), interleaved in one thread or one per warp of a block, 256 links "
        "each, found in the L2 of their owner, timed by the clock register. A remote load counts as hidden when it "
        "costs no more per load than a single dependent own load; between the numbers tried, by interpolation. "
        "Beside own work: a dependent chain in one thread with 0 to 1024 dependent additions issued after each load; "
        "the hidden share is 1 less what the load adds to them over its time alone. A share of remote accesses: all "
        "multiprocessors read 1 GiB of which so many pieces of 16 KiB are remote. Prefetch: loads one after the other "
        "from known places, each asked for 16 places ahead."
    ),
    run=run,
    gpus=1,
)
