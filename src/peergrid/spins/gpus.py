"""A relaxation on GPUs: half steps by `half_step.cu`; copy engines, stores of the kernel or NCCL exchange words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from peergrid.arguments import check_steps
from peergrid.codegen.cuda.skeletons import skeleton
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.errors import DeviceFault, UsageError
from peergrid.grid import Grid
from peergrid.grid.partition import Partition
from peergrid.machine.driver import find, kept_current
from peergrid.probe.cuda.devices import Gpus, LoadedKernel, Scope, Stream, u64
from peergrid.spins.gpu_kernel import THREADS, blocks, file
from peergrid.spins.graph import WORD, BipartiteGraph
from peergrid.spins.nccl import AllGather
from peergrid.spins.philox import Words
from peergrid.spins.rule import energy, first_words, thresholds

Exchange = Literal["copy", "store", "nccl"]
MOST, LINE_BYTES = 16, 128
BUDGET = 2_000_000_000  # nanoseconds after which a wait of a GPU for another fails
RELAXATION = np.dtype(
    [
        ("neighbours", "<u8", 2),
        ("words", "<u8", (2, MOST)),
        ("flags", "<u8", MOST),
        ("arrived", "<u8"),
        ("fault", "<u8"),
        ("budget", "<i8"),
        ("first", "<u4"),
        ("last", "<u4"),
        ("me", "<u4"),
        ("gpus", "<u4"),
        ("limits", "<u4", 5),
        ("seed", "<u4", 2),
        ("spare", "<u4"),
    ]
)
"""The struct that the kernels read."""


def source() -> str:
    """The text of the kernels."""
    return skeleton("system_memory.cuh") + file("half_step.cu")


def shares(words: int, gpus: int) -> tuple[tuple[int, int], ...]:
    """The range of words of each GPU, as even as possible."""
    partition = Partition.over(Grid((words,)), gpus)
    return tuple((partition.owned(gpu).lo[0], partition.owned(gpu).hi[0]) for gpu in range(gpus))


@dataclass
class GpuRelaxation:
    """The variables of a graph on GPUs, with the bits of `Relaxation`; made by `gpu_relaxation`."""

    devices: Gpus
    graph: BipartiteGraph
    exchange: Exchange
    shares: tuple[tuple[int, int], ...]
    structs: list[int]
    words_at: np.ndarray[Any, Any]
    fault: list[int]
    streams: list[Stream]
    kernels: list[LoadedKernel]
    events: list[Any]
    gather: AllGather | None
    step: int = field(default=0)

    def advance(self, half_steps: int) -> None:
        """Make half steps and wait for them. Raises DeviceFault if a GPU waits in vain for another."""
        check_steps(half_steps)
        with self.devices.kept_current():
            for _ in range(half_steps):
                self._half_step()
            for gpu in range(len(self.shares)):
                self.devices.wait(gpu)
                if int(self.devices.read(gpu, self.fault[gpu], 1)[0]):
                    raise DeviceFault(
                        f"GPU {gpu} expected the words of another within {BUDGET / 1e9:.0f} s; none came."
                    )

    def words(self, gpu: int = 0) -> tuple[Words, Words]:
        """The words of red and of blue, copied from a GPU."""
        with self.devices.kept_current():
            red, blue = (self.devices.read(gpu, int(self.words_at[c, gpu]), self.graph.words) for c in (0, 1))
        return red, blue

    def energy(self) -> float:
        """The energy of a variable, in units of the coupling."""
        return energy(self.graph.red, *self.words())

    def sha256(self, gpu: int = 0) -> str:
        """A digest of all variables, red before blue."""
        return hashlib.sha256(b"".join(words.tobytes() for words in self.words(gpu))).hexdigest()

    def _half_step(self) -> None:
        gpus = range(len(self.shares))
        for gpu in gpus:
            self.kernels[gpu](
                self.streams[gpu], blocks(self.shares[gpu]), THREADS, u64(self.structs[gpu]), u64(self.step)
            )
        if len(gpus) > 1 and self.exchange == "copy":
            self._copies()
        if len(gpus) > 1 and self.gather is not None:
            target = 1 - self.step % 2
            self.gather(self.devices, self.words_at[target], self.shares, self.streams)
        self.step += 1

    def _copies(self) -> None:
        """Copy every GPU's words to all others in its stream; every stream then waits for the copies of the others."""
        target = 1 - self.step % 2
        for gpu, (first, last) in enumerate(self.shares):
            self.devices.use(gpu)
            for other in range(len(self.shares)):
                if other != gpu:
                    places = (int(self.words_at[target, place]) + 4 * first for place in (other, gpu))
                    self.devices.call("cuMemcpyAsync", *places, 4 * (last - first), self.streams[gpu].handle)
            self.devices.call("cuEventRecord", self.events[gpu], self.streams[gpu].handle)
        for gpu, stream in enumerate(self.streams):
            self.devices.use(gpu)
            for other, event in enumerate(self.events):
                if other != gpu:
                    self.devices.call("cuStreamWaitEvent", stream.handle, event, 0)


@contextmanager
def gpu_relaxation(
    graph: BipartiteGraph, coupling: float, seed: int = 0, gpus: int = 1, exchange: Exchange = "store"
) -> Iterator[GpuRelaxation]:
    """A relaxation on the first GPUs of the machine; arguments as in `Relaxation`.

    exchange: `copy` (copy engines and events), `store` (the kernel's stores and flags), `nccl` (all-gather).

    Raises UsageError for GPUs or libraries that this machine lacks, DeviceFault if a GPU fails.
    """
    if exchange not in get_args(Exchange):
        raise UsageError(f"An exchange is one of {', '.join(get_args(Exchange))}, got {exchange!r}.")
    driver, missing = find()
    if driver is None:
        raise UsageError(f"GPUs are needed here: {missing.why if missing else 'there are none'}.")
    opened = ExitStack()
    try:
        with kept_current(driver):
            devices = opened.enter_context(Gpus.open(driver))
            if not 1 <= gpus <= min(len(devices), MOST):
                raise UsageError(f"1 to {min(len(devices), MOST)} GPUs are here, got {gpus}.")
            scope = opened.enter_context(devices.scope())
            made = _relaxation(devices, scope, graph, thresholds(coupling), seed, gpus, exchange)
        yield made
    finally:
        with kept_current(driver):  # the caller's may be another than at the beginning
            opened.close()


def _relaxation(
    devices: Gpus, scope: Scope, graph: BipartiteGraph, limits: Words, seed: int, gpus: int, exchange: Exchange
) -> GpuRelaxation:
    words, parts = graph.words, shares(graph.words, gpus)
    at = np.zeros((2, MOST), np.uint64)
    at[:, :gpus] = [[scope.memory(gpu, 4 * words) for gpu in range(gpus)] for _ in range(2)]
    flags = [scope.words(gpu, MOST * LINE_BYTES // 4) for gpu in range(gpus)]
    own = [scope.words(gpu, 64) for gpu in range(gpus)]
    first, structs = first_words(words, seed), []
    for gpu, (lo, hi) in enumerate(parts):
        neighbours = [_copied(devices, scope, gpu, side[lo * WORD : hi * WORD]) for side in (graph.red, graph.blue)]
        for colour in (0, 1):
            devices.put(gpu, int(at[colour, gpu]), first)
        one = np.zeros(1, RELAXATION)
        one["neighbours"], one["words"], one["flags"][0, :gpus] = neighbours, at, flags
        one["arrived"], one["fault"], one["budget"] = own[gpu], own[gpu] + LINE_BYTES, BUDGET
        one["first"], one["last"], one["me"], one["gpus"] = lo, hi, gpu, gpus
        one["limits"], one["seed"] = limits, (seed & 0xFFFFFFFF, seed >> 32)
        structs.append(_copied(devices, scope, gpu, one.view(np.uint8)))
    return GpuRelaxation(
        devices,
        graph,
        exchange,
        parts,
        structs,
        at,
        [address + LINE_BYTES for address in own],
        [scope.stream(gpu) for gpu in range(gpus)],
        [_kernel(devices, gpu, "half_step_and_store" if exchange == "store" else "half_step") for gpu in range(gpus)],
        [scope.event(gpu) for gpu in range(gpus)],
        AllGather.over(scope, gpus) if exchange == "nccl" and gpus > 1 else None,
    )


def _copied(devices: Gpus, scope: Scope, gpu: int, values: np.ndarray[Any, Any]) -> int:
    """An array in the memory of a GPU; its address."""
    address = scope.memory(gpu, values.nbytes)
    devices.put(gpu, address, np.ascontiguousarray(values))
    return address


def _kernel(devices: Gpus, gpu: int, name: str) -> LoadedKernel:
    major, minor = (devices.attribute(f"COMPUTE_CAPABILITY_{part}", gpu) for part in ("MAJOR", "MINOR"))
    key = ("half_step", gpu)
    if key not in devices.modules:
        devices.use(gpu)
        devices.modules[key] = devices.call("cuModuleLoadData", compile_cubin(source(), f"sm_{major}{minor}"))
    return LoadedKernel(devices, gpu, name, devices.call("cuModuleGetFunction", devices.modules[key], name.encode()))
