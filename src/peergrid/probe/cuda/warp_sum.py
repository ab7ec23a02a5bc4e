"""The sum of 32 doubles in shared memory, seven ways (table V of the study)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk, per_repeat
from peergrid.probe.experiment import Bench, Measurement, Probe, result

WAYS = ("serial", "nosync", "volatile tile", "tile", "coalesced", "tile shuffle", "coalesced shuffle")
FEW, MANY = 16, 144
SUM = 32 * 33 / 2


def run(bench: Bench) -> Iterator[Measurement]:
    """Cycles of each way; all but the one without synchronisation must give the sum."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        desk = Desk.make(scope)
        for way in WAYS:
            cycles = [_cycles(desk, way) for _ in range(bench.choose(3, 9))]
            yield result("warp_sum", "cycles", cycles, {"way": way}, floor=0.02)


def _cycles(desk: Desk, way: str) -> float:
    kernel = desk.devices.kernel(0, "reduction", f"sum32_{way.replace(' ', '_')}")

    def cycles(repeats: int) -> float:
        desk.run(kernel, 1, 1 if way == "serial" else 32, *_arguments(repeats, way), u64(desk.out), u64(desk.sink))
        found = float(desk.devices.read(0, desk.sink, 2).view("f8")[0])
        if way != "nosync" and found != SUM:
            raise DeviceFault(f"The sum of 32 doubles by '{way}' should be {SUM}, but is {found}.")
        return float(desk.read()[0])

    return per_repeat(cycles, FEW, MANY)


def _arguments(repeats: int, way: str) -> tuple[ctypes.c_uint32, ctypes.c_uint32]:
    """The count of sums, and the lanes that meet."""
    return u32(repeats), u32(1 if way == "serial" else 0xFFFFFFFF)


PROBE = Probe(
    name="warp-sum",
    group="model",
    title="The sum of 32 doubles by one thread or by a warp, seven ways",
    unit="cycles",
    method=(
        "144 sums less 16, by the clock register, of one warp alone: values are stored to shared memory anew, then "
        "added by one thread, by halves with no barrier (wrong by the rules of the language), with bar.warp.sync of a "
        "tile or of a coalesced group, or by shuffles; in a coalesced group each finds its source by rank in the mask."
    ),
    run=run,
    gpus=1,
)
