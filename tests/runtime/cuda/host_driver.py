"""A CUDA driver on the host: generated kernels compiled as plain C++, streams as queues worked off in a random order.

Nothing that is issued runs before somebody asks for it, and then streams take turns at random, held back by events and
flags alone, kernels block by block, with those of other devices in between: a missing edge shows as wrong bits.
Handles are addresses, device memory is host memory.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from host_kernels import COMPILER, kernels, library
from host_maps import tensor_map
from numpy.typing import NDArray

from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.skeletons import skeleton
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.device.faults import error

__all__ = ["COMPILER", "HostDriver"]

RUNTIME = (Path(__file__).parent / "host_runtime.cpp").read_text()
HANDLE = """
static void run_{name}(const void* const* a) {{ {name}({given}); }}
extern "C" HostKernel handle_{name} = {{run_{name}, {count}, {{{sizes}}}, HostKernel::{way}, {ready}}};
"""
READY = """
static bool ready_{name}(const void* const* a) {{
  const auto& e = *(const Exchange*)a[1];
  for (const Side& side : e.side)
    if (side.local && side.local[(e.passed + 1) & 1] < (e.passed + 1) / 2 * side.expected) return false;
  return true;
}}
"""
"""A kernel that awaits its neighbours runs as a whole here, so not before they are that far."""


def with_handles(source: str) -> str:
    """Generated text as C++ with a handle for each of its kernels; those whose threads work together run in warps."""
    text = kernels(source)
    bounds = r"(?:__(?:launch_bounds|maxnreg)__\([\d, ]+\)\s)?"
    found = re.findall(rf"void {bounds}(\w+)\((const __grid_constant__ [^)]*)\)", text)
    way = "WARPS" if skeleton("async_copy.cuh") in source or "__syncthreads" in source else "THREADS"
    return text + "".join(_handle(name, re.findall(r"__grid_constant__ (\w+)", given), way) for name, given in found)


def _handle(name: str, kinds: list[str], way: str) -> str:
    """A kernel that takes structs of these kinds; one that waits for other devices in between takes turns with them."""
    way = "AWAITS" if name == "await_flag" else "TURNS" if {"Passes", "Parts"} & {*kinds} else way
    linked = "Exchange" in kinds and way == "WARPS"
    return (READY.format(name=name) if linked else "") + HANDLE.format(
        name=name,
        given=", ".join(f"*(const {kind}*)a[{k}]" for k, kind in enumerate(kinds)),
        count=len(kinds),
        sizes=", ".join(f"sizeof({kind})" for kind in kinds),
        way=way,
        ready=f"ready_{name}" if linked else "nullptr",
    )


class HostDriver(CudaDriver):
    """A driver for tests; `gpus` of them, of which each reaches those that `links` allows.

    delay: microseconds that calls wait for at most, at random; peak: bytes that were taken at once at most; registers:
    of a kernel's thread; asked: the most shared memory that a thread block was to have; gpu:
    the model of the GPU; speed: bytes a second; words:
    whether streams wait for words of memory; texts: what was compiled.
    """

    def __init__(
        self,
        gpus: int = 8,
        seed: int = 1,
        links: bool = True,
        free: int = 1 << 30,
        blocks: int = 3,
        delay: int = 0,
        registers: int = 200,
        gpu: GpuModel = H200,
        speed: float = 1e15,
        words: bool = True,
    ) -> None:
        self.words = words
        self.gpu, self.asked, self.speed = gpu, 0, speed
        self.gpus, self.links, self.free_bytes, self.blocks, self.each = gpus, links, free, blocks, registers
        self._library = ctypes.CDLL(str(library(RUNTIME)))
        for name in ("begin_capture", "end_capture", "stamp", "reserve", "current"):
            getattr(self._library, name).restype = ctypes.c_longlong
        self._library.drain()
        self._library.cuCtxSetCurrent(0)
        self._library.seed(seed)
        self._library.delays(delay)
        self._taken: dict[int, Any] = {}
        self._next = 1
        self._modules: list[ctypes.CDLL] = []
        self.live: set[tuple[str, int]] = set()
        self.peak = 0
        self._contexts: Counter[int] = Counter()
        self.captures = 0
        self.kernels: set[str] = set()
        self.texts: list[str] = []

    def device_count(self) -> int:
        return self.gpus

    def name(self, ordinal: int) -> str:
        return "host"

    def architecture(self, ordinal: int) -> str:
        return "sm_90"

    def model(self, ordinal: int) -> GpuModel:
        return replace(self.gpu, multiprocessors=self.blocks)

    def bandwidth(self, ordinal: int) -> float:
        return self.speed

    def double_cost(self, ordinal: int) -> int:
        return 2

    def awaits_words(self, ordinal: int) -> bool:
        return self.words

    def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None = None) -> bytes:
        self.texts.append(source)
        return str(library(with_handles(source))).encode()

    def retain(self, ordinal: int) -> int:
        self._contexts[ordinal] += 1
        self.live.add(("context", ordinal))
        return 1000 + ordinal

    def release(self, ordinal: int) -> None:
        self._contexts[ordinal] -= 1
        if not self._contexts[ordinal]:
            self.live.remove(("context", ordinal))

    def make_current(self, context: int) -> None:
        assert not context or 1000 <= context < 1000 + self.gpus
        self._library.cuCtxSetCurrent(ctypes.c_longlong(context))

    def current(self) -> int:
        return int(self._library.current())

    def memory(self) -> tuple[int, int]:
        return self.free_bytes, self.free_bytes

    def allocate(self, count: int) -> int:
        """New memory, in which every value is NaN."""
        block = np.full(count + 512, 0xFF, np.uint8)
        address = -(-block.ctypes.data // 256) * 256
        self._taken[address] = block
        self.live.add(("memory", address))
        self.peak = max(self.peak, sum(block.nbytes for block in self._taken.values()))
        return address

    def free(self, pointer: int) -> None:
        self._library.drain()
        self.live.remove(("memory", pointer))
        del self._taken[pointer]

    allocate_host, free_host = allocate, free

    def fill(self, pointer: int, word: int, words: int) -> None:
        np.ctypeslib.as_array((ctypes.c_uint32 * words).from_address(pointer))[:] = word

    def upload(self, pointer: int, values: np.ndarray[Any, Any]) -> None:
        values = np.ascontiguousarray(values)
        ctypes.memmove(pointer, values.ctypes.data, values.nbytes)

    def download(self, values: np.ndarray[Any, Any], pointer: int) -> None:
        ctypes.memmove(values.ctypes.data, pointer, values.nbytes)

    def granularity(self, ordinal: int) -> int:
        return 4096

    def reserve(self, count: int) -> int:
        address = int(self._library.reserve(ctypes.c_longlong(count)))
        self.live.add(("range", address))
        return address

    def unreserve(self, pointer: int, count: int) -> None:
        self.live.remove(("range", pointer))
        self._library.unreserve(ctypes.c_longlong(pointer), ctypes.c_longlong(count))

    def map_memory(self, pointer: int, count: int, ordinal: int) -> None:
        self.live.add(("mapped", pointer))
        self._library.map_memory(ctypes.c_longlong(pointer), ctypes.c_longlong(count))

    def unmap(self, pointer: int, count: int) -> None:
        self._library.drain()
        self.live.remove(("mapped", pointer))
        self._library.unmap(ctypes.c_longlong(pointer))

    def grant(self, pointer: int, count: int, ordinals: Sequence[int]) -> None:
        rights = sum(1 << ordinal for ordinal in ordinals)
        self._library.grant(ctypes.c_longlong(pointer), ctypes.c_longlong(rights))

    def create_stream(self, priority: int) -> int:
        return self._handle("stream")

    def destroy_stream(self, stream: int) -> None:
        self.live.remove(("stream", stream))

    def create_event(self, timing: bool) -> int:
        return self._handle("event")

    def destroy_event(self, event: int) -> None:
        self.live.remove(("event", event))

    def elapsed(self, start: int, end: int) -> float:
        """The tasks between two events count as a microsecond each."""
        return 1e-6 * (self._library.stamp(ctypes.c_longlong(end)) - self._library.stamp(ctypes.c_longlong(start)))

    def load(self, cubin: bytes) -> int:
        self._modules.append(ctypes.CDLL(cubin.decode()))
        self.live.add(("module", len(self._modules)))
        return len(self._modules)

    def unload(self, module: int) -> None:
        self.live.remove(("module", module))

    def function(self, module: int, name: str) -> int:
        self.kernels.add(name)
        return ctypes.addressof(ctypes.c_char.in_dll(self._modules[module - 1], f"handle_{name}"))

    def registers(self, function: int) -> int:
        return self.each

    def resident(self, function: int, threads: int, shared: int, *, whole: bool = True) -> int:
        self.asked = max(self.asked, shared)
        return self.blocks if shared <= self.gpu.block_shared else 0

    def reaches(self, ordinal: int, peer: int) -> bool:
        return ordinal == peer or self.links

    def enable_peer(self, context: int, peer: int) -> None:
        assert self.links

    def synchronize(self) -> None:
        self._library.drain()
        if self._library.stray_access():
            raise error(700, "cuCtxSynchronize")

    def tensor_map(
        self, address: int, extents: Sequence[int], strides: Sequence[int], box: Sequence[int]
    ) -> NDArray[np.uint64]:
        return tensor_map(address, extents, strides, box)

    def begin_capture(self, stream: int) -> None:
        self.captures += 1
        self._library.begin_capture()

    def end_capture(self, stream: int) -> int:
        graph = int(self._library.end_capture())
        self.live.add(("graph", graph))
        return graph

    def instantiate(self, graph: int) -> int:
        self.live.add(("executable", graph))
        return graph

    def destroy_graph(self, graph: int) -> None:
        self.live.remove(("graph", graph))

    def destroy_executable(self, executable: int) -> None:
        self.live.remove(("executable", executable))

    def entry(self, name: str) -> int:
        return int(ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0)

    def _handle(self, kind: str) -> int:
        self._next += 1
        self.live.add((kind, self._next))
        return self._next
