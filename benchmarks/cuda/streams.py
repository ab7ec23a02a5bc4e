"""Streaming 3D kernels launch by launch: shapes side by side, in a burst and at sustained work, on one GPU.

    python benchmarks/cuda/streams.py why|shapes [--only WORD,...] [--size 512] [--host] [--seconds S] [--out FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path.cwd()
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from problems3d import CASES, TIME_STEPS  # noqa: E402

from peergrid.bench.problems import noise  # noqa: E402
from peergrid.codegen.cuda.gpu_model import H200  # noqa: E402
from peergrid.codegen.cuda.stream3d.choose import one_pass  # noqa: E402
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel  # noqa: E402
from peergrid.codegen.cuda.stream_shape import StreamShape  # noqa: E402
from peergrid.grid.partition import Partition  # noqa: E402
from peergrid.runtime.cuda.executor import CudaExecutor  # noqa: E402
from peergrid.runtime.cuda.lowering.programs import Needed  # noqa: E402
from peergrid.runtime.cuda.lowering.plan import Setting  # noqa: E402
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan  # noqa: E402
from peergrid.runtime.cuda.memory import blocks as blocks_module  # noqa: E402
from peergrid.runtime.cuda.memory.blocks import BlockLayout  # noqa: E402
from peergrid.runtime.cuda.memory.fields import FieldMemory  # noqa: E402
from peergrid.schedule import Options, layout, one_iteration  # noqa: E402
from peergrid.schedule.ops import Event, Queue  # noqa: E402
from peergrid.stencil import Problem  # noqa: E402

BYTES = {"acoustic": 16, "tti": 84, "tti_one_stage": 48, "box27": 8, "heat": 8, "yee_periodic": 48, "yee": 52}
QUEUE = Queue(0, "bench")
START = time.monotonic()


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - START:6.1f}]", *words, flush=True)


@dataclass
class Pad:
    """How memory is laid out: more values a row, more rows a plane, bytes by which each next block is shifted."""

    row: int = 0
    rows: int = 0
    shift: int = 0
    count: int = 0


PAD = Pad()


def _pitches(self: BlockLayout) -> Any:
    row = -(-(self.lead + self.extent[-1]) // blocks_module.LINE) * blocks_module.LINE + PAD.row
    steps = [1]
    more = [row, *(n + PAD.rows for n in reversed(self.extent[1:-1]))]
    for size in more[: len(self.extent) - 1]:
        steps.append(steps[-1] * size)
    return tuple(reversed(steps))


def _values(self: BlockLayout) -> int:
    if not all(self.extent):
        return 0
    return 2 * self.guard + (self.pitches[0] * self.extent[0] if len(self.extent) > 1 else self.extent[0] + 64)


def _block(self: FieldMemory, device: int, block: BlockLayout) -> int:
    PAD.count += 1
    return self._filled(device, block.bytes + 64 * PAD.shift) + PAD.count * PAD.shift


def patch() -> None:
    for name, made in (("pitches", _pitches), ("values", _values)):
        setattr(BlockLayout, name, property(made))
    FieldMemory._block = _block  # type: ignore[method-assign]


class Bench:
    """A problem on a device, with memory filled at once."""

    def __init__(self, problem: Problem, driver: Any, cache: Path | None, pad: Pad) -> None:
        global PAD
        PAD = pad
        PAD.count = 0
        self.problem, self.driver = problem, driver
        self.plan = layout(problem, Partition(problem.grid, (1, 1, 1)), Options("overlap", depth=1))
        self.executor = CudaExecutor(self.plan, 1 << 20, (0,), driver=driver, cache=cache)
        self.execution = self.executor._execution
        self.execution.devices.enter(0)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_longlong] * 11)
        self.launch = kind(self.execution.entry("cuLaunchKernel"))
        self.copy = kind(self.execution.entry("cuMemcpyAsync"))
        self.mark = kind(self.execution.entry("cuEventRecord"))
        self.stream = self.execution.devices.stream(QUEUE)
        self.noise = 0
        self.events = [self.execution.devices.event(Event(0, f"bench {n}"), timing=True) for n in range(1200)]

    def fill(self, how: str) -> None:
        """noise in the state, constants in coefficients; or constants everywhere."""
        memory, devices = self.execution.memory, self.execution.devices
        layouts = memory.plan.blocks[0]
        most = max(block.bytes for block in layouts.values())
        if not self.noise:
            self.noise = devices.allocate(0, most + (1 << 21))
            self.driver.upload(self.noise, noise(((most + (1 << 21)) // 4,), 5))
        for n, (name, pointers) in enumerate(memory._fields[0].items()):
            for pointer in pointers:
                count = layouts[name].bytes
                if how == "noise" and name in self.problem.state:
                    self.copy(pointer, self.noise + 65536 * n, count, self.stream, *[0] * 7)
                else:
                    self.driver.fill(pointer, int(np.float32(0.1).view(np.uint32)), count // 4)
        for n, pointer in enumerate(memory._scratch[0]):
            count = layouts[memory.plan.scratch[n]].bytes
            self.copy(pointer, self.noise + 65536 * n, count, self.stream, *[0] * 7)
        self.driver.synchronize()

    def starts(self, kernel: StreamKernel) -> list[Any]:
        box = self.plan.partition.owned(0)
        setting = Setting(self.problem, self.execution.gpu, ((),))
        return list(StreamingPlan(setting, kernel, ((0, (box,)),)).launches(self.execution, 0, (box,)))

    def rows(self, starts: list[Any], alternate: bool = True) -> list[list[Any]]:
        """The launches of a step from slot 0 and of one from slot 1."""
        found = []
        for source in (0, 1):
            mine = []
            for start in starts:
                values = start.values.copy()
                values["source"], values["target"] = (source, 1 - source) if alternate else (0, 1)
                structs = [values, *start.arguments(1 - source)]
                pointers = np.array([s.ctypes.data for s in structs], np.uint64)
                words = (start.function, start.blocks, start.rows, 1, start.threads, 1, 1, start.shared, self.stream)
                mine.append(((*words, int(pointers.ctypes.data), 0), structs, pointers))
            found.append(mine)
        return found

    def times(self, rows: list[list[Any]], steps: int, each: bool = False) -> list[float]:
        """Seconds of each step (or launch), launched back to back."""
        count = len(rows[0]) if each else 1
        assert steps * count < len(self.events)
        n = 0
        self.mark(self.events[0], self.stream, *[0] * 9)
        for step in range(steps):
            for k, (words, *_) in enumerate(rows[step % 2]):
                code = self.launch(*words)
                assert not code, code
                if each or k == len(rows[0]) - 1:
                    n += 1
                    self.mark(self.events[n], self.stream, *[0] * 9)
        self.driver.synchronize()
        return [self.driver.elapsed(self.events[k], self.events[k + 1]) for k in range(n)]

    def rate(self, seconds: float, name: str) -> float:
        return self.problem.grid.box.size * TIME_STEPS.get(name, 1) / seconds / 1e9

    def close(self) -> None:
        self.executor.close()


def burst(bench: Bench, rows: Any, name: str) -> float:
    """The median rate of short bursts with rests."""
    found = []
    for _ in range(3):
        time.sleep(0.01)
        one = bench.times(rows, 2)
        steps = max(4, min(60, int(0.012 / (sum(one) / 2)) // 2 * 2))
        found.append(sum(bench.times(rows, steps)) / steps)
    return bench.rate(median(found), name)


def long(bench: Bench, rows: Any, name: str, seconds: float = 0.3) -> tuple[float, float, float]:
    """The rate at the beginning, in the middle and at the end of sustained work."""
    time.sleep(0.1)
    one = sum(bench.times(rows, 2)) / 2
    steps = max(12, min(1100, int(seconds / one)) // 2 * 2)
    time.sleep(0.2)
    t = bench.times(rows, steps)
    k = max(2, steps // 8 // 2 * 2)
    m = steps // 2 // 2 * 2
    return tuple(bench.rate(sum(part) / len(part), name) for part in (t[2 : 2 + k], t[m : m + k], t[-k:]))  # type: ignore[return-value]


def tell(found: tuple[float, ...]) -> str:
    return "/".join(f"{one:.1f}" for one in found)


def why(name: str, size: int, driver: Any, cache: Path | None, words: Any) -> None:
    problem = words(name, size)
    kernel = kernel_of(problem, name, driver)
    limit = COPY / BYTES[name] / 1e9
    say(f"== {name}: {[str(s) for s in kernel.shapes]}; limit {limit:.1f}")
    pads = {
        "as is": Pad(),
        "row+32": Pad(row=32),
        "rows+8": Pad(rows=8),
        "row+32 rows+8": Pad(row=32, rows=8),
        "shift": Pad(shift=128 * 37),
        "row+32 rows+8 shift": Pad(row=32, rows=8, shift=128 * 37),
    }
    for label, pad in pads.items():
        bench = Bench(problem, driver, cache, pad)
        try:
            bench.fill("noise")
            starts = bench.starts(kernel)
            rows = bench.rows(starts)
            if label == "as is":
                say("  launches", [(s.blocks, s.threads, s.shared, s.concurrent) for s in starts])
                with_run(bench, name)
                bench.fill("noise")
            single = bench.times(rows, 4, each=True)
            say(f"  {label}: burst {burst(bench, rows, name):.1f}, long {tell(long(bench, rows, name))}; launches ms",
                [round(1e3 * t, 3) for t in single[len(starts) * 2 :]])  # fmt: skip
            if label == "as is":
                fixed = bench.rows(starts, alternate=False)
                say(f"  same slots: burst {burst(bench, fixed, name):.1f}, long {tell(long(bench, fixed, name))}")
                for k in range(len(starts)):
                    one = bench.rows(starts[k : k + 1], alternate=False)
                    say(f"  launch {k} alone: burst {burst(bench, one, name):.1f}, long {tell(long(bench, one, name))}")
                    if k > 2:
                        break
                bench.fill("constant")
                say(f"  constant: burst {burst(bench, rows, name):.1f}, long {tell(long(bench, rows, name))}")
        except Exception as error:  # noqa: BLE001
            say("  FAILED", label, repr(error)[:300])
        finally:
            bench.close()


def with_run(bench: Bench, name: str) -> None:
    """The same through the executor, and what its command buffer has."""
    schedule = one_iteration(bench.plan, Options("overlap", depth=1))
    bench.executor.prepare(schedule)
    lowered = bench.executor._lower(schedule)
    execution = bench.execution
    names = {execution.entry(n): n for n in ("cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery")}
    for commands in lowered.buffers.values():
        for row in commands.table:
            called = names.get(int(row[2]), str(int(row[2])))
            say("    row", int(row[0]), called, row[4:11].tolist() if called == "cuLaunchKernel" else "")
    done, found = 0, []
    for count in (2, 20, 20, 100, 100, 100, 300):
        time.sleep(0.3)
        began = time.perf_counter()
        bench.executor.execute(schedule, max(1, count // schedule.steps), done)
        seconds = (time.perf_counter() - began) / (max(1, count // schedule.steps) * schedule.steps)
        done += max(1, count // schedule.steps) * schedule.steps
        found.append(round(bench.rate(seconds, name), 1))
    say("  executor, 2 20 20 100 100 100 300 steps:", found)


def kernel_of(problem: Problem, name: str, driver: Any) -> StreamKernel:
    found = one_pass(problem)
    if found is None:
        stages = tuple((n,) for n in range(len(problem.stages)))
        found = StreamKernel(problem, 1, (StreamShape(128, 16, 4, 3),) * len(stages), stages)
    return found


def shapes(name: str, size: int, driver: Any, cache: Path | None, words: Any, tried: list[Any], pad: Pad) -> list[Any]:
    """Rates of kernels in shapes, all compiled first."""
    problem, made = words(name, size), []
    bench = Bench(problem, driver, cache, pad)
    rows_out: list[Any] = []
    try:
        kernels = []
        for one in tried:
            try:
                kernel = one(problem)
                _ = kernel.programs
                kernels.append(kernel)
            except Exception as error:  # noqa: BLE001
                say("  no kernel", one, repr(error)[:200])
        bench.execution.programs.expect([Needed(tuple(p.source for k in kernels for p in k.programs))])
        bench.fill("noise")
        for kernel in kernels:
            label = " | ".join(map(brief, dict.fromkeys(kernel.shapes)))
            try:
                starts = bench.starts(kernel)
                slots = [bench.driver.resident(s.function, s.threads, s.shared) for s in starts]
                regs = [bench.driver.registers(s.function) for s in starts]
                rows = bench.rows(starts)
                quick = burst(bench, rows, name)
                held = (quick,)
                each = bench.times(rows, 2, each=True)[-len(starts) :]
                found = {"name": name, "shapes": label, "burst": quick, "long": held, "ms": [1e3 * t for t in each],
                         "blocks": [s.blocks for s in starts], "slots": slots, "registers": regs}  # fmt: skip
                say(f"  {name} {label}: burst {quick:.1f} ({100 * quick * BYTES[name] * 1e9 / COPY:.1f} %); ms {[round(1e3 * t, 3) for t in each][:4]} blocks {found['blocks'][:4]} slots {slots[:4]} "
                    f"regs {regs[:4]}")  # fmt: skip
                rows_out.append(found)
            except Exception as error:  # noqa: BLE001
                say("  FAILED", label, repr(error)[:300])
    finally:
        bench.close()
    return rows_out


def brief(shape: StreamShape) -> str:
    extra = "".join(("" if shape.held else " all", f" lead {shape.lead}" if shape.lead else "", "" if shape.kept else " unkept",
                     f" blocks {shape.blocks}" if shape.blocks != 1 else "", "" if shape.stream else " unstreamed"))  # fmt: skip
    return f"{shape.columns}x{shape.rows}/{shape.rows_each} +{shape.ahead}{extra}"


def each_stage(*shape: StreamShape) -> Any:
    """A kernel whose launches are single stages, shapes in turn."""

    def made(problem: Problem) -> StreamKernel:
        stages = tuple((n,) for n in range(len(problem.stages)))
        return StreamKernel(problem, 1, tuple(shape[n % len(shape)] for n in range(len(stages))), stages)

    return made


def at_once(shape: StreamShape) -> Any:
    return lambda problem: StreamKernel(problem, 1, (shape,), (tuple(range(len(problem.stages))),))


S = StreamShape
TRIED: dict[str, list[Any]] = {}


def main() -> None:
    global COPY
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what")
    parser.add_argument("--only", default="")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--pad", default="0,0,0")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    patch()
    driver, COPY = of_machine(given.host)
    say(f"copy {COPY / 1e12:.3f} TB/s")
    names = given.only.split(",") if given.only else list(BYTES)
    made = lambda name, size: CASES[name][0](size, "float32")  # noqa: E731
    cache = Path("/tmp/streams-cache")
    out: list[Any] = []
    for name in names:
        if time.monotonic() - START > given.seconds:
            break
        if given.what == "why":
            why(name, given.size, driver, cache, made)
        else:
            from tried import TRIED  # type: ignore[import-not-found]

            out += shapes(name, given.size, driver, cache, made, TRIED[name], Pad(*map(int, given.pad.split(","))))
            if given.out:
                given.out.write_text(json.dumps(out, indent=1))


def of_machine(host: bool) -> tuple[Any, float]:
    if host:
        sys.path[:0] = [str(ROOT / "tests" / p) for p in ("runtime/cuda", "runtime", "codegen/cuda", "stencil", ".")]
        from host_driver import HostDriver

        return HostDriver(gpu=replace(H200, streamed_cells_3d=1000, streamed_share_3d=0), blocks=4), 4.2e12
    from peergrid.runtime.cuda.bandwidth import copy_bandwidth
    from peergrid.runtime.cuda.device.driver import CudaDriver

    return CudaDriver(), copy_bandwidth(0) or 4.2e12


COPY = 4.2e12
if __name__ == "__main__":
    main()
