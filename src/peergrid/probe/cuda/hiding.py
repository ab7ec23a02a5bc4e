"""The number of independent loads, or warps, that hide a remote load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from peergrid.probe.cuda.chase import chain
from peergrid.probe.cuda.devices import Array, Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

KINDS = (1, 2, 4, 8, 16, 32)
LINKS, STRIDE, STEPS = 4096, 4096, 256


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
    if "remote" not in owners:
        yield Lack("remote loads: GPU 0 cannot reach the memory of a GPU 1")
        return
    yield from _hidden(times)


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
    rows=("M11",),
    title="Cycles per load against independent loads in flight, own and remote",
    unit="cycles",
    method=(
        "Independent chains of uncached loads (cv), interleaved in one thread or one per warp of a block, 256 links "
        "each, found in the L2 of their owner, timed by the clock register. A remote load counts as hidden when it "
        "costs no more per load than a single dependent own load; between the numbers tried, by interpolation."
    ),
    run=run,
    gpus=1,
)
