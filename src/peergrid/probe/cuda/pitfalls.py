"""Does a warp barrier block all its threads, and what happens when only a part of a group reaches a barrier?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.probe.cuda.device_barrier import reach
from peergrid.probe.cuda.devices import Array, Gpus, u32, u64
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

LINE = 32  # words between flags
PART_BLOCKS = 2


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """The warp's timers of figures 17 and 18, then partial groups at every level."""
    devices: Gpus = bench.devices
    for kind in ("tile", "shuffle", "coalesced"):
        timers = [_timers(devices, kind) for _ in range(3)]
        blocks = [float(starts.max() < ends.min()) for starts, ends in timers]
        yield result("warp_blocks", "", blocks, {"kind": kind}, floor=0.0)
        for moment, which in (("arrival", 0), ("departure", 1)):
            for lane in range(32):
                each = [float(timer[which][lane] - timer[0].min()) for timer in timers]
                at: At = {"kind": kind, "moment": moment, "thread": lane}
                yield result("warp_timer", "cycles", each, at, floor=0.05)
    for level, hangs in _partial(devices).items():
        yield result("partial_group_hangs", "", [float(hangs)], {"level": level}, floor=0.0)
    yield from _over_gpus(devices)


def _timers(devices: Gpus, kind: str) -> tuple[Array, Array]:
    """Clock of each lane before and after the barrier."""
    with devices.scope() as scope:
        starts, ends = scope.memory(0, 256), scope.memory(0, 256)
        devices.kernel(0, "warp", f"apart_{kind}")(scope.stream(0), 1, 32, u64(starts), u64(ends))
        devices.wait(0)
        first, last = (devices.read(0, at, 32, np.int64) for at in (starts, ends))
    return first, last


def _partial(devices: Gpus) -> dict[str, bool]:
    """True if a barrier that a part never reaches still waits when its budget ends.

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
    return levels


def _over_gpus(devices: Gpus) -> Iterator[Measurement | Lack]:
    """All GPUs start the same barrier; a block of the last one leaves before it. All other blocks should be caught."""
    count = reach(devices)
    if count < 2:
        yield Lack("a partial group of several GPUs: no two GPUs of this machine reach each other")
        return
    with devices.scope() as scope:
        flags = [scope.words(device, LINE * count) for device in range(count)]
        words = [scope.words(device, 2) for device in range(count)]
        tables = [scope.memory(device, 8 * count) for device in range(count)]
        for device, table in enumerate(tables):
            devices.put(device, table, np.array(flags, np.uint64))
        for device in range(count):
            kernel = devices.kernel(device, "barrier", "part_of_devices")
            place = u64(words[device]), u64(tables[device]), u32(device), u32(count), u32(device == count - 1)
            kernel(scope.stream(device), PART_BLOCKS, 32, *place, u64(words[device] + 4), cooperative=True)
        devices.wait_all(count)
        caught = sum(int(devices.read(device, words[device] + 4, 1)[0]) for device in range(count))
    hangs = caught == PART_BLOCKS * count - 1
    at: At = {"level": "several GPUs", "devices": count}
    yield result("partial_group_hangs", "", [float(hangs)], at, floor=0.0)


PROBE = Probe(
    name="pitfalls",
    group="synchronisation",
    title="Does a warp barrier block all threads, when each arrives and leaves, and does a partial group hang?",
    unit="",
    method=(
        "Every lane reaches the barrier in a branch of its own and records the clock before and after; it "
        "blocks if the "
        "last arrival is before the first departure. Partial groups: a part of a warp, block, grid or set of GPUs "
        "leaves before the barrier, on several GPUs one block of the last GPU; waits on memory carry a budget of "
        "20 million cycles, which catches the hang."
    ),
    run=run,
    gpus=1,
)
