"""Does a warp barrier block all its threads, and what happens when only a part of a group reaches a barrier?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.probe.cuda.devices import Gpus, u64
from peergrid.probe.experiment import Bench, Measurement, Probe, result


def run(bench: Bench) -> Iterator[Measurement]:
    """The warp's timers of figures 17 and 18, then partial groups at every level."""
    devices: Gpus = bench.devices
    for kind in ("tile", "shuffle", "coalesced"):
        yield result("warp_blocks", "", [_blocks(devices, kind) for _ in range(3)], {"kind": kind}, floor=0.0)
    for level, hangs in _partial(devices).items():
        yield result("partial_group_hangs", "", [float(hangs)], {"level": level}, floor=0.0)


def _blocks(devices: Gpus, kind: str) -> float:
    """1 if no lane left the barrier before the last one reached it, else 0."""
    with devices.scope() as scope:
        starts, ends = scope.memory(0, 256), scope.memory(0, 256)
        devices.kernel(0, "warp", f"apart_{kind}")(scope.stream(0), 1, 32, u64(starts), u64(ends))
        devices.wait(0)
        first, last = (devices.read(0, at, 32, np.uint64) for at in (starts, ends))
    return float(first.max() < last.min())


def _partial(devices: Gpus) -> dict[str, bool]:
    """True where a barrier that a part never reaches still waits when its budget ends.

    In warps and blocks the others have left, and the hardware does not count who has left. Grids and sets of
    GPUs wait on words in memory, where nobody knows who left: the budget is the watchdog that ends them.
    """
    with devices.scope() as scope:
        words = scope.words(0, 160)
        stream = scope.stream(0)
        done, caught = words, words + 4
        devices.kernel(0, "warp", "part_of_warp")(stream, 1, 32, u64(done))
        devices.kernel(0, "warp", "part_of_block")(stream, 1, 128, u64(done))
        devices.wait(0)
        ended = int(devices.read(0, done, 1)[0])
        levels = {"warp": ended < 16, "block": ended < 16 + 64}
        grid = devices.kernel(0, "barrier", "part_of_grid")
        grid(stream, 4, 32, u64(words + 128), u64(caught), cooperative=True)
        devices.wait(0)
        levels["grid"] = int(devices.read(0, caught, 1)[0]) == 3
        devices.kernel(0, "barrier", "part_of_devices")(stream, 1, 32, u64(words + 256), u64(caught + 4))
        devices.wait(0)
        levels["several GPUs"] = int(devices.read(0, caught + 4, 1)[0]) == 1
    return levels


PROBE = Probe(
    name="pitfalls",
    group="synchronisation",
    rows=("M37",),
    title="Does a warp barrier block all threads, and does a partial group hang?",
    unit="",
    method=(
        "Every lane meets the barrier in a branch of its own and records the clock before and after; it blocks if the "
        "last arrival is before the first departure. Partial groups: a part of a warp, block, grid or set of GPUs "
        "leaves before the barrier; waits on memory carry a budget of 20 million cycles, which catches the hang."
    ),
    run=run,
    gpus=1,
)
