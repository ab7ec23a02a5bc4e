"""Stand-ins for the CUDA driver and NVML: enough of both to read two GPUs from."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any


class Driver:
    """A driver with `count` GPUs; a copy between a pair in `lossy` does not arrive."""

    VALUES: dict[str, int] = {  # noqa: RUF012 - a table
        "COMPUTE_CAPABILITY_MAJOR": 9,
        "COMPUTE_CAPABILITY_MINOR": 0,
        "MULTIPROCESSOR_COUNT": 132,
        "MEMORY_CLOCK_RATE": 3_201_000,
        "GLOBAL_MEMORY_BUS_WIDTH": 6144,
        "L2_CACHE_SIZE": 60 << 20,
        "CLOCK_RATE": 1_980_000,
        "ASYNC_ENGINE_COUNT": 3,
        "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS": 1,
        "GPU_DIRECT_RDMA_WRITES_ORDERING": 100,
    }

    def __init__(self, count: int = 2, lossy: tuple[tuple[int, int], ...] = (), integrated: bool = False) -> None:
        self.count, self.lossy = count, lossy
        values = {**self.VALUES, "INTEGRATED": int(integrated)}
        self.values = list(values.values())
        self.CUdevice_attribute = SimpleNamespace(
            **{f"CU_DEVICE_ATTRIBUTE_{name}": at for at, name in enumerate(values)}
        )
        self.CUdevice_P2PAttribute = SimpleNamespace(
            CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED=1, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK=0
        )
        self.current = -1
        self.store: dict[int, tuple[int, int]] = {}

    def cuDeviceGetCount(self) -> tuple[int, int]:  # noqa: N802
        return 0, self.count

    def cuDeviceGet(self, index: int) -> tuple[int, int]:  # noqa: N802
        return 0, index

    def cuDeviceGetPCIBusId(self, _: int, device: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, f"0000:F{device}:00.0\0\0".encode()

    def cuDeviceGetName(self, _: int, device: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"NVIDIA H200\0\0"

    def cuDeviceGetUuid(self, device: int) -> tuple[int, Any]:  # noqa: N802
        return 0, SimpleNamespace(bytes=bytes(range(16)))

    def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:  # noqa: N802
        return 0, 141 << 30

    def cuDeviceGetAttribute(self, key: int, device: int) -> tuple[int, int]:  # noqa: N802
        return 0, self.values[key]

    def cuDeviceCanAccessPeer(self, source: int, target: int) -> tuple[int, int]:  # noqa: N802
        return 0, 1

    def cuDeviceGetP2PAttribute(self, key: int, source: int, target: int) -> tuple[int, int]:  # noqa: N802
        return 0, key

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:  # noqa: N802
        return 0, device

    def cuDevicePrimaryCtxRelease(self, device: int) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuCtxGetCurrent(self) -> tuple[int, int]:  # noqa: N802
        return 0, self.current

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:  # noqa: N802
        self.current = context
        return (0,)

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuCtxDisablePeerAccess(self, context: int) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuCtxSynchronize(self) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuMemAlloc(self, size: int) -> tuple[int, int]:  # noqa: N802
        address = len(self.store) + 1
        self.store[address] = (self.current, 0)
        return 0, address

    def cuMemFree(self, address: int) -> tuple[int]:  # noqa: N802
        return (0,)

    def cuMemsetD32(self, address: int, value: int, words: int) -> tuple[int]:  # noqa: N802
        self.store[address] = (self.store[address][0], value)
        return (0,)

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:  # noqa: N802
        (there, _), (here, value) = self.store[target], self.store[source]
        if (here, there) not in self.lossy:
            self.store[target] = (there, value)
        return (0,)

    def cuMemcpyDtoH(self, host: int, source: int, size: int) -> tuple[int]:  # noqa: N802
        word = self.store[source][1].to_bytes(4, "little")
        ctypes.memmove(host, word * (size // 4), size)
        return (0,)


class NVMLError(Exception):
    """What the fake NVML raises when it refuses; `value` is NVML's code."""

    value = 4


class Nvml:
    """NVML with 18 lines per GPU, to a switch, or two to the other GPU; `refuse` names functions that fail."""

    NVML_NVLINK_MAX_LINKS = 18
    NVMLError = NVMLError

    def __init__(self, switched: bool = True, refuse: tuple[str, ...] = ()) -> None:
        self.switched, self.refuse = switched, refuse

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "refuse"):

            def refused(*args: Any) -> Any:
                raise NVMLError("no permission")

            return refused
        return object.__getattribute__(self, name)

    def nvmlDeviceGetHandleByPciBusId(self, pci: bytes) -> str:  # noqa: N802
        return pci.decode()

    def nvmlDeviceGetMaxPcieLinkGeneration(self, device: str) -> int:  # noqa: N802
        return 5

    def nvmlDeviceGetMaxPcieLinkWidth(self, device: str) -> int:  # noqa: N802
        return 16

    def nvmlDeviceGetCpuAffinity(self, device: str, words: int) -> list[int]:  # noqa: N802
        return [0b1011] + [0] * (words - 1)

    def nvmlDeviceGetTopologyCommonAncestor(self, first: str, second: str) -> int:  # noqa: N802
        return 40

    def nvmlDeviceGetNvLinkState(self, device: str, line: int) -> int:  # noqa: N802
        return 1 if self.switched or line < 2 else 0

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, device: str, line: int) -> int:  # noqa: N802
        return 2 if self.switched else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: str, line: int) -> Any:  # noqa: N802
        other = "f1" if device == "0000:f0:00.0" else "f0"
        return SimpleNamespace(busId=f"00000000:{other.upper()}:00.0".encode())
