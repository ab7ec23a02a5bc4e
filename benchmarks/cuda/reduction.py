"""Sums of doubles beside CUB's in turns, and on several GPUs beside one; the sum of 32 doubles seven ways.

    python benchmarks/cuda/reduction.py [--rounds 3] [--seconds 60] [--out reduction.json]

CUB is that of the CUDA toolkit here, compiled by its nvcc. Each row is a size; a rate is the median of all samples, in
bytes read per second. `of_reading` is the best of ours over a kernel that only reads, `against_cub` over CUB's.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.machine.driver import find  # noqa: E402
from peergrid.probe import Bench  # noqa: E402
from peergrid.probe.cuda import warp_sum  # noqa: E402
from peergrid.probe.cuda.devices import Gpus, Scope, Stream  # noqa: E402
from peergrid.probe.cuda.reduction import SEVERAL, SIZES, Sums, _repeated, single  # noqa: E402

CUB = """
#include <cub/device/device_reduce.cuh>
extern "C" int cub_sum(void* room, size_t* bytes, const double* from, double* to, long long count, void* stream) {
  return (int)cub::DeviceReduce::Sum(room, *bytes, from, to, (int)count, (cudaStream_t)stream);
}
"""


def cub(folder: Path) -> Any:
    """CUB's sum as a function, None without nvcc."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    (folder / "cub.cu").write_text(CUB)
    command = [nvcc, "-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-o", "cub.so", "cub.cu"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no CUB: {error}", flush=True)
        return None
    if done.returncode:
        print(f"no CUB: {done.stderr[-500:]}", flush=True)
        return None
    return ctypes.CDLL(str(folder / "cub.so")).cub_sum


class Cub:
    """CUB's sum over the values of GPU 0."""

    def __init__(self, function: Any, sums: Sums, scope: Scope) -> None:
        self._function, self._sums = function, sums
        self._out = scope.memory(0, 8)
        needed = ctypes.c_size_t(0)
        sums.devices.use(0)
        self._call(None, needed, SIZES[-1] // 8, 0)
        self._room, self._bytes = scope.memory(0, max(needed.value, 1)), needed

    def _call(self, room: int | None, size: ctypes.c_size_t, count: int, stream: int) -> None:
        values, out = ctypes.c_void_p(self._sums.values[0]), ctypes.c_void_p(getattr(self, "_out", 0))
        given = ctypes.c_void_p(room), ctypes.byref(size), values, out, ctypes.c_longlong(count)
        code = self._function(*given, ctypes.c_void_p(stream))
        assert code == 0, f"CUB refused: {code}"

    def seconds(self, size: int, samples: int) -> list[float]:
        repeats = self._sums._repeats(size)

        def work(stream: Stream) -> None:
            self._sums.devices.use(0)
            self._call(self._room, ctypes.c_size_t(self._bytes.value), size // 8, int(stream.handle))

        pairs = [(self._sums.streams[0], _repeated(work, repeats))]
        return [one / repeats for (one,) in self._sums.gate.samples(pairs, samples)]

    def result(self) -> float:
        return float(self._sums.devices.read(0, self._out, 2).view("f8")[0])


def row(sums: Sums, other: Cub | None, size: int, gpus: int, rounds: int) -> dict[str, Any]:
    """All ways for a size in turns."""
    seconds: dict[str, list[float]] = {}
    values = set()
    for _ in range(rounds):
        for way in single(size):
            seconds.setdefault(way, []).extend(sums.seconds(way, size, 1, 3))
            values.add(float(sums.result()[0]).hex())
        for way in SEVERAL if gpus > 1 else ():
            seconds.setdefault(f"{gpus} GPUs, {way}", []).extend(sums.seconds(way, size, gpus, 3))
            values.add(float(sums.result()[0]).hex())
        seconds.setdefault("reading alone", []).extend(sums.reading(size, 3))
        if other is not None:
            seconds.setdefault("CUB", []).extend(other.seconds(size, 3))
    rates = {way: size / statistics.median(found) for way, found in seconds.items()}
    ours = max(rates[way] for way in single(size))
    found: dict[str, Any] = {"bytes": size, "rates": rates, "same_bits": len(values) == 1, "sum": sorted(values)}
    found["of_reading"] = round(ours / rates["reading alone"], 4)
    if other is not None:
        found |= {"against_cub": round(ours / rates["CUB"], 4), "cub_sum": other.result().hex()}
    if gpus > 1:
        found["speed_up"] = round(max(rates[f"{gpus} GPUs, {way}"] for way in SEVERAL) / ours, 4)
    return found


def parts(devices: Gpus, scope: Scope, rounds: int, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows; on several GPUs the largest sizes gain most."""
    sizes = tuple(1 << bits for bits in (30, 32, 34, *range(29, 9, -1)))
    gpus, sums = len(devices), Sums.make(scope, max(sizes), len(devices))
    function = cub(folder)
    other = None if function is None else Cub(function, sums, scope)
    for size in sizes:
        yield "rows", row(sums, other if size <= SIZES[-1] else None, size, gpus, rounds)
    for item in warp_sum.run(Bench(devices=devices)):
        yield "warp_sum", {"way": item.at["way"], "cycles": item.median}  # type: ignore[union-attr]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("reduction.json"))
    given = parser.parse_args()
    started, found = time.monotonic(), about(("peergrid", "numpy", "cuda-bindings"))
    driver, missing = find()
    assert driver is not None, missing
    with tempfile.TemporaryDirectory() as folder, Gpus.open(driver) as devices, devices.scope() as scope:
        for name, item in parts(devices, scope, given.rounds, Path(folder)):
            found.setdefault(name, []).append(item)
            print(f"{time.monotonic() - started:.1f} s", name, item, flush=True)
            given.out.write_text(json.dumps(found, indent=1) + "\n")
            if time.monotonic() - started > given.seconds:
                print("the time is over", flush=True)
                return


if __name__ == "__main__":
    main()
