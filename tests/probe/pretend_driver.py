"""A driver that only pretends: it checks every call and every kernel argument, and executes almost nothing.

Kernels get results that have the right form, so that the experiments run to their end on a machine without GPUs.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from cuda.bindings import driver as real
from cuda.bindings import nvrtc

from peergrid.probe.cuda.compile import HEADED, SOURCES, headers, text

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 4,
    "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": 1,
    "UNIFIED_ADDRESSING": 1,
    "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS": 1,
}
BIG = 16 << 20
TYPES = {".u64": ctypes.c_uint64, ".u32": ctypes.c_uint32, ".f32": ctypes.c_float}


@cache
def signatures() -> dict[str, tuple[Any, ...]]:
    """The parameter types of every kernel, read from the PTX that NVRTC makes of the sources."""
    found: dict[str, tuple[Any, ...]] = {}
    for source in (*SOURCES, *HEADED):
        ptx = _ptx(text(source))
        for name, arguments in re.findall(r"\.entry (\w+)\s*\(([^)]*)\)", ptx):
            found[name] = tuple(TYPES[kind] for kind in re.findall(r"\.param\s+(\.\w+)", arguments))
        for name in re.findall(r"\.entry (\w+)\s*\{", ptx):
            found[name] = ()
    return found


def _ptx(code: str) -> str:
    """PTX by NVRTC alone: cuda.core would ask the driver for its version first."""
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), b"x.cu", 0, [], [])
    options = [b"-arch=compute_90", b"-std=c++17", *(f"-I{folder}".encode() for folder in headers())]
    assert int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) == 0
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.decode()


class PretendDriver:
    """`count` GPUs, all of which reach each other; counts what is held, so that leaks show."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.memory: dict[int, np.ndarray] = {}  # type: ignore[type-arg]
        self.next = 1 << 40
        self.owner: dict[int, int] = {}
        self.spare: list[np.ndarray] = []  # type: ignore[type-arg]  # the host's memory that was given back
        self.current = 0
        self.linked = np.zeros((count, 2), np.int64)  # bytes that crossed a link, sent and received by each GPU
        self.hosted = np.zeros((count, 2), np.int64)  # bytes to and from the host
        self.launched: set[str] = set()
        self.held: dict[str, int] = {}
        self.calls: dict[str, Callable[..., Any]] = {
            "cuDeviceGetCount": lambda: count,
            "cuDevicePrimaryCtxRetain": lambda device: 100 + device,
            "cuCtxGetCurrent": lambda: 100 + self.current,
            "cuDeviceCanAccessPeer": lambda a, b: 1,
            "cuMemGetAllocationGranularity": lambda properties, kind: 2 << 20,
            "cuMemAddressReserve": lambda size, align, at, flags: self._take("range", size),
            "cuMemCreate": lambda size, properties, flags: self._take("physical", 8),
            "cuMemAlloc": lambda size: self._take("memory", size),
            "cuMemHostAlloc": self._host,
            "cuStreamCreate": lambda flags: self._take("stream", 8),
            "cuEventCreate": lambda flags: self._take("event", 8),
            "cuEventElapsedTime": lambda first, last: 1.0,
            "cuModuleLoadData": lambda code: 7,
            "cuModuleGetFunction": lambda module, name: name.decode(),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda function, block, shared: 2048 // block,
            "cuStreamEndCapture": lambda stream: self._take("graph", 8),
            "cuGraphInstantiate": lambda graph, flags: self._take("ready graph", 8),
            "cuPointerGetAttribute": self._pointer,
            "cuDeviceGetPCIBusId": lambda length, device: f"0000:0{device}:00.0\0".encode(),
        }
        self.gives = {
            "cuMemFree": "memory",
            "cuMemFreeHost": "memory",
            "cuStreamDestroy": "stream",
            "cuEventDestroy": "event",
            "cuGraphDestroy": "graph",
            "cuGraphExecDestroy": "ready graph",
            "cuMemAddressFree": "range",
            "cuMemRelease": "physical",
        }

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            return getattr(real, name)
        assert hasattr(real, name), f"the driver has no {name}"

        def called(*arguments: Any) -> tuple[Any, ...]:
            if name in self.gives:
                self._give(self.gives[name], arguments[0])
            if name in self.calls:
                return 0, self.calls[name](*arguments)
            own = getattr(self, f"_{name}", None)
            if own is not None:
                own(*arguments)
            return (0,)

        return called

    def cuDeviceGetAttribute(self, key: Any, device: int) -> tuple[int, int]:  # noqa: N802
        known = {getattr(real.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"): v for name, v in ATTRIBUTES.items()}
        return 0, known.get(key, 0)

    def _take(self, kind: str, size: int) -> int:
        self.held[kind] = self.held.get(kind, 0) + 1
        address = self.next
        self.next += max(size, 8) + 4096
        if kind in ("memory", "range"):
            self.memory[address] = np.zeros(max(size, 8), np.uint8)
            self.owner[address] = self.current
        return address

    def _host(self, size: int, flags: int) -> int:
        self.held["memory"] = self.held.get("memory", 0) + 1
        again = next((at for at, block in enumerate(self.spare) if block.size == size), None)
        block = np.zeros(size, np.uint8) if again is None else self.spare.pop(again)
        self.memory[block.ctypes.data] = block
        return int(block.ctypes.data)

    def _give(self, kind: str, address: int) -> None:
        self.held[kind] -= 1
        if kind in ("memory", "range"):
            block = self.memory.pop(address, None)
            if self.owner.pop(address, None) is None and block is not None:
                self.spare.append(block)

    def moved(self, to: int, source: int, size: int) -> None:
        """Count a copy that crosses a link."""
        ends = [self._owner(source), self._owner(to)]
        for way, end in enumerate(ends):
            if end is not None and None in ends:
                self.hosted[end, way] += size
        if None not in ends and ends[0] != ends[1]:
            self.linked[ends[0], 0] += size
            self.linked[ends[1], 1] += size

    def _owner(self, address: int) -> int | None:
        """The GPU whose memory holds an address; None for host memory."""
        bases = [base for base, block in self.memory.items() if base <= address < base + block.size]
        return self.owner.get(bases[0]) if bases else None

    def _pointer(self, key: Any, address: int) -> int:
        """Kind of memory, or the GPU that holds it; a range counts as one piece."""
        owner = self._owner(address)
        if key == real.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return 1 if owner is None else 2
        return -2 if owner is None else owner

    def _cuCtxSetCurrent(self, context: int) -> None:  # noqa: N802
        self.current = context - 100

    def _cuMemcpyAsync(self, to: int, source: int, size: int, stream: int) -> None:  # noqa: N802
        self.moved(to, source, size)

    def at(self, address: int, count: int, kind: type[np.generic]) -> np.ndarray:  # type: ignore[type-arg]
        """A view of pretended memory."""
        for base, block in self.memory.items():
            if base <= address < base + block.size:
                begin = address - base
                return block[begin : begin + count * np.dtype(kind).itemsize].view(kind)
        raise AssertionError(f"no memory at {address}")

    def _cuMemsetD32(self, address: int, value: int, words: int) -> None:  # noqa: N802
        if words * 4 <= BIG:
            self.at(address, words, np.uint32)[:] = value

    def _cuMemcpyDtoH(self, host: int, address: int, size: int) -> None:  # noqa: N802
        if size <= BIG:
            ctypes.memmove(host, self.at(address, size, np.uint8).ctypes.data, size)

    def _cuMemcpyHtoD(self, address: int, host: int, size: int) -> None:  # noqa: N802
        if size <= BIG:
            ctypes.memmove(self.at(address, size, np.uint8).ctypes.data, host, size)

    def _cuLaunchKernel(self, *arguments: Any) -> None:  # noqa: N802
        name, packed = arguments[0], arguments[9]
        self._launch(name, packed, arguments[1])

    def _cuLaunchCooperativeKernel(self, *arguments: Any) -> None:  # noqa: N802
        assert len(arguments) == 10
        self._launch(arguments[0], arguments[9], arguments[1])

    def _cuLaunchKernelEx(self, config: Any, name: str, packed: Any, extra: int) -> None:  # noqa: N802
        assert config.numAttrs == len(config.attrs)
        self._launch(name, packed, config.gridDimX)

    def _launch(self, name: str, packed: Any, grid: int) -> None:
        values, types = packed if packed else ((), ())
        assert types == signatures()[name], f"{name} takes {signatures()[name]}, but got {types}"
        assert all(isinstance(value, (int, float)) for value in values)
        self.launched.add(name)
        effect = EFFECTS.get(name.split("_")[0])
        if effect is not None:
            effect(self, name, values, grid)


Effect = Callable[[PretendDriver, str, Any, int], None]


def _cycles(per: Callable[[Any], float], out: int) -> Effect:
    def effect(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
        driver.at(values[out], 1, np.uint64)[0] = int(per(values))

    return effect


def _block(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    driver.at(values[1], grid, np.uint64)[:] = values[0] * 16 * 30


def _copy(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    """The runner stands in the middle: what it loads and what it stores may cross links."""
    to, source, size = values[0], values[1], values[2] * 16 * values[3]
    ends = driver._owner(source), driver.current, driver._owner(to)
    for a, b in ((ends[0], ends[1]), (ends[1], ends[2])):
        if a != b:
            driver.linked[a, 0] += size
            driver.linked[b, 1] += size


def _watch(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    if values[3]:
        driver.at(values[3], 1, np.uint32)[0] = values[4]
    driver.at(values[7], 1, np.uint32)[0] = 5


def _add(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    words = driver.at(values[0], 1 if not values[1] else 128 * 256, np.uint32)
    words += np.uint32(values[2] * (1 if values[1] else 128 * 256))


def _apart(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    driver.at(values[0], 32, np.uint64)[:] = np.arange(32)
    driver.at(values[1], 32, np.uint64)[:] = 100 if "tile" in name else 5


def _part(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    added = {"part_of_warp": 16, "part_of_block": 64, "part_of_grid": 3}.get(name)
    if added is None:  # blocks that stay and wait in vain
        added = grid - values[4]
    driver.at(values[-1], 1, np.uint32)[0] += added


def _additions(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    driver.at(values[2], 2, np.uint64)[:] = (values[0] * 64 * 4, values[0] * 64 * 2)


def _sum(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    driver.at(values[3], 1, np.uint64)[0] = int(values[1] * (values[0] * 3 + 100 * values[2] + 20))


def _sum32(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    driver.at(values[2], 1, np.uint64)[0] = values[0] * 200
    driver.at(values[3], 1, np.float64)[0] = 528.0


def _lanes(driver: PretendDriver, name: str, values: Any, grid: int) -> None:
    """A warp's additions to one word cross the link as one, those to many words line by line."""
    driver.linked[driver.current, 0] += grid * 256 // 32 * values[3] * 32 * (4 if values[2] and values[1] > 1 else 1)


EFFECTS: dict[str, Effect] = {
    "lanes": _lanes,
    "groups": _cycles(lambda v: v[1] * 16 * 14, 2),
    "beside": _cycles(lambda v: v[1] * (700 + 4 * 16 * v[2]), 4),
    "ahead": _cycles(lambda v: v[1] * 300, 4),
    "chase": lambda d, n, v, g: _cycles(lambda w: w[0] * 16 * 25 if n == "chase_shared" else w[1] * 700,
                                        1 if n == "chase_shared" else 3)(d, n, v, g),
    "chains": _cycles(lambda v: v[1] * 700, 2),
    "warps": _cycles(lambda v: v[1] * 700, 2),
    "tile": _cycles(lambda v: v[1] * 16 * 14, 2),
    "shuffle": _cycles(lambda v: v[1] * 16 * 22, 2),
    "coalesced": _cycles(lambda v: v[1] * 16 * 14, 2),
    "block": _block,
    "copy": _copy,
    "watch": _watch,
    "add": _add,
    "apart": _apart,
    "part": _part,
    "additions": _additions,
    "sum": _sum,
    "sum32": _sum32,
}  # fmt: skip


class PretendNvml:
    """Traffic counters of a pretended driver, in KiB; `refuse` gives none."""

    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139
    NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197
    NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198

    class NVMLError(Exception):
        """What a refusal raises."""

    def __init__(self, driver: PretendDriver, refuse: bool = False) -> None:
        self.driver, self.refuse = driver, refuse

    def nvmlDeviceGetHandleByPciBusId(self, pci: bytes) -> int:  # noqa: N802
        return int(pci.decode()[6])

    def nvmlDeviceGetFieldValues(self, handle: int, fields: Any) -> list[Any]:  # noqa: N802
        if self.refuse:
            raise self.NVMLError("no permission")
        if fields[0] == self.NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
            counted = [int(value) * 108 // 100 % 2**32 for value in self.driver.hosted[handle]]
        else:
            counted = [int(value) // 1024 for value in self.driver.linked[handle]]
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=value)) for value in counted]
