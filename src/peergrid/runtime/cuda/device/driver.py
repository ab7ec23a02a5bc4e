"""The CUDA driver as this package uses it: few calls, integers as handles, every failure one classified sentence.

Contexts, streams, events, modules and memory are integers, as command buffers hold them. Tests bring a subclass that
runs on the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.costs.machines import nearest
from peergrid.errors import DeviceFault, extra
from peergrid.machine.driver import kept
from peergrid.runtime.cuda.device.faults import error

PEER_ALREADY_ENABLED = 704
ATTRIBUTES = {
    "major": 75, "minor": 76, "multiprocessors": 16, "shared": 97, "memory clock": 36, "bus width": 37,
    "single to double": 87, "words in streams": 122,
}  # fmt: skip
PLAIN_SHARED = 48 << 10  # bytes of shared memory that a thread block may have without asking
MOST_SHARED = 100  # per cent of what a multiprocessor can have as shared memory
REGISTERED = 3  # CU_MEMHOSTREGISTER_PORTABLE and _DEVICEMAP
ENABLE_PEER = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
HANDLE = 64  # bytes of a CUipcMemHandle
TENSOR_MAP = (*[ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32], *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 4)
LATEST = 13000  # the version of the entry points asked for


class CudaDriver:
    """The installed NVIDIA driver through cuda.bindings; a context must be current for allocations, streams, events and
    modules. Raises DeviceFault where there is none.
    """

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver
        except ImportError:
            raise DeviceFault(f"CUDA devices need the CUDA packages: {extra('cuda')}.") from None
        self._d: Any = driver
        try:
            self._call("cuInit", 0)
        except RuntimeError:
            raise DeviceFault("No NVIDIA driver library (libcuda) was found; use the devices cpu:4, say.") from None

    def device_count(self) -> int:
        return int(self._call("cuDeviceGetCount"))

    def name(self, ordinal: int) -> str:
        """Such as `NVIDIA H200`."""
        return bytes(self._call("cuDeviceGetName", 96, self._device(ordinal))).split(b"\0")[0].decode()

    def uuid(self, ordinal: int) -> str:
        """The name of the GPU that no other has, 32 hexadecimal digits."""
        return bytes(self._call("cuDeviceGetUuid", self._device(ordinal)).bytes).hex()

    def architecture(self, ordinal: int) -> str:
        """Such as `sm_90`."""
        return f"sm_{self._attribute('major', ordinal)}{self._attribute('minor', ordinal)}"

    def model(self, ordinal: int) -> GpuModel:
        """The model of a GPU. Blocks may have 227 KiB of shared memory on H200s, 163 on A100s, 99 on RTXs."""
        costs = nearest(self.name(ordinal), 1)
        usual = replace(H200, multiprocessors=self._attribute("multiprocessors", ordinal), costs=costs)
        return usual.with_block_shared(self._attribute("shared", ordinal))

    def bandwidth(self, ordinal: int) -> float:
        """Bytes per second that memory moves at most, twice a clock (in kHz) its width (in bits); 0: unknown."""
        return 2e3 * self._attribute("memory clock", ordinal) * self._attribute("bus width", ordinal) / 8

    def double_cost(self, ordinal: int) -> int:
        """The time of operations in double precision over that in single: 2 on H200s, 32 or 64 on most others."""
        return max(1, self._attribute("single to double", ordinal))

    def awaits_words(self, ordinal: int) -> bool:
        """True where streams of a device can wait for a word of memory; not so under Windows' display drivers."""
        return bool(self._attribute("words in streams", ordinal))

    def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None) -> bytes:
        """The machine code of a program; file: where its text lies for profilers to show."""
        return compile_cubin(source, architecture, cache, file=file)

    def retain(self, ordinal: int) -> int:
        """The primary context of a device."""
        return int(self._call("cuDevicePrimaryCtxRetain", self._device(ordinal)))

    def release(self, ordinal: int) -> None:
        self._call("cuDevicePrimaryCtxRelease", self._device(ordinal))

    def make_current(self, context: int) -> None:
        self._call("cuCtxSetCurrent", self._d.CUcontext(context))

    def current(self) -> int:
        """The context that is current for this thread; 0 where there is none."""
        return int(self._call("cuCtxGetCurrent"))

    def kept_current(self) -> AbstractContextManager[None]:
        """A block after which the thread's current context is the one before: those of callers are theirs."""
        return kept(self.current, self.make_current)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, count: int) -> int:
        return int(self._call("cuMemAlloc", max(count, 16)))

    def free(self, pointer: int) -> None:
        self._call("cuMemFree", pointer)

    def fill(self, pointer: int, word: int, words: int) -> None:
        """Set `words` 32-bit words."""
        if words:
            self._call("cuMemsetD32", pointer, word, words)
            self._settle()

    def upload(self, pointer: int, values: np.ndarray[Any, Any]) -> None:
        if values.nbytes:
            self._call("cuMemcpyHtoD", pointer, np.ascontiguousarray(values).ctypes.data, values.nbytes)
            self._settle()

    def download(self, values: np.ndarray[Any, Any], pointer: int) -> None:
        """Fill a C-contiguous array."""
        if values.nbytes:
            self._call("cuMemcpyDtoH", values.ctypes.data, pointer, values.nbytes)

    def allocate_host(self, count: int) -> int:
        """Pinned memory that every device reaches under the same address."""
        flags = self._d.CU_MEMHOSTALLOC_PORTABLE | self._d.CU_MEMHOSTALLOC_DEVICEMAP
        return int(self._call("cuMemHostAlloc", max(count, 16), flags))

    def free_host(self, pointer: int) -> None:
        self._call("cuMemFreeHost", pointer)

    def register_host(self, pointer: int, count: int) -> None:
        """Let all devices reach host memory, whole pages of it, that is there already, under the same address."""
        self._call("cuMemHostRegister", pointer, count, REGISTERED)

    def unregister_host(self, pointer: int) -> None:
        self._call("cuMemHostUnregister", pointer)

    def export_memory(self, pointer: int) -> bytes:
        """The handle by which other processes of the host open an allocation: CUDA IPC."""
        return ctypes.string_at(self._call("cuIpcGetMemHandle", pointer).getPtr(), HANDLE)

    def open_memory(self, handle: bytes) -> int:
        """The address, for the current device, of memory that another process exported."""
        given = self._d.CUipcMemHandle()
        ctypes.memmove(given.getPtr(), handle, HANDLE)
        return int(self._call("cuIpcOpenMemHandle", given, ENABLE_PEER))

    def close_memory(self, pointer: int) -> None:
        self._call("cuIpcCloseMemHandle", pointer)

    def granularity(self, ordinal: int) -> int:
        """Bytes in whose multiples the memory of a device is mapped to addresses."""
        least = self._d.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        return int(self._call("cuMemGetAllocationGranularity", self._mappable(ordinal), least))

    def reserve(self, count: int) -> int:
        """Addresses without memory."""
        return int(self._call("cuMemAddressReserve", count, 0, 0, 0))

    def unreserve(self, pointer: int, count: int) -> None:
        self._call("cuMemAddressFree", pointer, count)

    def map_memory(self, pointer: int, count: int, ordinal: int) -> None:
        """New memory of a device under reserved addresses; it lasts until they are unmapped."""
        handle = self._call("cuMemCreate", count, self._mappable(ordinal), 0)
        try:
            self._call("cuMemMap", pointer, count, 0, handle, 0)
        finally:
            self._call("cuMemRelease", handle)

    def unmap(self, pointer: int, count: int) -> None:
        self._call("cuMemUnmap", pointer, count)

    def grant(self, pointer: int, count: int, ordinals: Sequence[int]) -> None:
        """Let devices read and write mapped memory."""
        rights = [self._d.CUmemAccessDesc() for _ in ordinals]
        for right, ordinal in zip(rights, ordinals, strict=True):
            right.location.type = self._d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            right.location.id = ordinal
            right.flags = self._d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._call("cuMemSetAccess", pointer, count, rights, len(rights))

    def create_stream(self, priority: int) -> int:
        """A stream that does not wait for the default one; priorities are cut to what the device has."""
        least, greatest = (int(p) for p in self._call("cuCtxGetStreamPriorityRange"))
        flags = self._d.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(self._call("cuStreamCreateWithPriority", int(flags), min(least, max(greatest, priority))))

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy", self._d.CUstream(stream))

    def create_event(self, timing: bool) -> int:
        flags = self._d.CUevent_flags
        return int(
            self._call("cuEventCreate", int(flags.CU_EVENT_DEFAULT if timing else flags.CU_EVENT_DISABLE_TIMING))
        )

    def destroy_event(self, event: int) -> None:
        self._call("cuEventDestroy", self._d.CUevent(event))

    def elapsed(self, start: int, end: int) -> float:
        """Seconds between two events."""
        return float(self._call("cuEventElapsedTime", self._d.CUevent(start), self._d.CUevent(end))) * 1e-3

    def load(self, cubin: bytes) -> int:
        return int(self._call("cuModuleLoadData", cubin))

    def unload(self, module: int) -> None:
        self._call("cuModuleUnload", self._d.CUmodule(module))

    def function(self, module: int, name: str) -> int:
        """A kernel, loaded now: loading it at its first launch could wait for a kernel that spins on a flag."""
        found = self._call("cuModuleGetFunction", self._d.CUmodule(module), name.encode())
        self._call("cuFuncLoad", found)
        return int(found)

    def registers(self, function: int) -> int:
        """Registers of a kernel's thread."""
        key = self._d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
        return int(self._call("cuFuncGetAttribute", key, self._d.CUfunction(function)))

    def resident(self, function: int, threads: int, shared: int, *, whole: bool = True) -> int:
        """Thread blocks of a kernel that the current device runs at once; grants the shared memory they need.

        0 where a block cannot have as much (see `shared`).
        whole: ask for all of a multiprocessor's, else leave the division from the first-level cache to the driver;
        blocks of two kernels share a multiprocessor only where both want the same.
        """
        handle, keys = self._d.CUfunction(function), self._d.CUfunction_attribute
        if shared > self._here("shared"):
            return 0
        if shared > PLAIN_SHARED:
            self._call("cuFuncSetAttribute", handle, keys.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
        if shared and whole:
            self._call(
                "cuFuncSetAttribute", handle, keys.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, MOST_SHARED
            )
        each = self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", handle, threads, shared)
        return int(each) * self._here("multiprocessors")

    def reaches(self, ordinal: int, peer: int) -> bool:
        """True where a device can address another's memory; its own it always can."""
        return ordinal == peer or bool(self._call("cuDeviceCanAccessPeer", self._device(ordinal), self._device(peer)))

    def enable_peer(self, context: int, peer: int) -> None:
        """Let a context address the memory of another; asking twice is fine."""
        self.make_current(context)
        code = int(self._d.cuCtxEnablePeerAccess(self._d.CUcontext(peer), 0)[0])
        if code not in (0, PEER_ALREADY_ENABLED):
            raise error(code, "cuCtxEnablePeerAccess")

    def tensor_map(
        self, address: int, extents: Sequence[int], strides: Sequence[int], box: Sequence[int]
    ) -> NDArray[np.uint64]:
        """The 16 words by which tensor copies know a block of memory, of elements of 8 bytes along three axes.

        extents: of the block, the axis of neighbours first; strides: bytes along the others; box: extents of a copy.
        """
        room = np.zeros(24, np.uint64)
        found = room[-(room.ctypes.data // 8) % 8 :][:16]  # the driver asks for a multiple of 64 bytes
        kinds = (extents, "u8"), (strides, "u8"), (box, "u4"), ((1, 1, 1), "u4")
        given = [np.array(one, kind) for one, kind in kinds]
        addresses = [int(one.ctypes.data) for one in given]
        kind = int(self._d.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT64)
        lines = int(self._d.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
        encode = ctypes.CFUNCTYPE(ctypes.c_int, *TENSOR_MAP)(self.entry("cuTensorMapEncodeTiled"))
        if code := encode(found.ctypes.data, kind, 3, address, *addresses, 0, 0, lines, 0):
            raise error(code, "cuTensorMapEncodeTiled")
        return found.copy()

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def begin_capture(self, stream: int) -> None:
        mode = self._d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call("cuStreamBeginCapture", self._d.CUstream(stream), mode)

    def end_capture(self, stream: int) -> int:
        return int(self._call("cuStreamEndCapture", self._d.CUstream(stream)))

    def instantiate(self, graph: int) -> int:
        """A graph ready to be launched; its kernels keep the priorities of the streams they were captured in."""
        flags = self._d.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
        return int(self._call("cuGraphInstantiate", self._d.CUgraph(graph), int(flags)))

    def destroy_graph(self, graph: int) -> None:
        self._call("cuGraphDestroy", self._d.CUgraph(graph))

    def destroy_executable(self, executable: int) -> None:
        self._call("cuGraphExecDestroy", self._d.CUgraphExec(executable))

    def entry(self, name: str) -> int:
        """The address of a driver function, for calls without the interpreter."""
        pointer, status = self._call("cuGetProcAddress", name.encode(), LATEST, 0)
        if not int(pointer):
            raise DeviceFault(f"The NVIDIA driver has no '{name}' (status {int(status)}): update it to CUDA 13.")
        return int(pointer)

    def _settle(self) -> None:
        """Wait for the default stream: its copies and fills may return early, and our streams do not wait for it."""
        self._call("cuStreamSynchronize", self._d.CUstream(0))

    def _mappable(self, ordinal: int) -> Any:
        """The description of plain memory of a device."""
        found = self._d.CUmemAllocationProp()
        found.type = self._d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        found.location.type = self._d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        found.location.id = ordinal
        return found

    def _device(self, ordinal: int) -> Any:
        return self._call("cuDeviceGet", ordinal)

    def _here(self, name: str) -> int:
        """An attribute of the current device."""
        return self._of(name, self._call("cuCtxGetDevice"))

    def _attribute(self, name: str, ordinal: int) -> int:
        return self._of(name, self._device(ordinal))

    def _of(self, name: str, device: Any) -> int:
        return int(self._call("cuDeviceGetAttribute", self._d.CUdevice_attribute(ATTRIBUTES[name]), device))

    def _call(self, name: str, *args: Any) -> Any:
        code, *values = getattr(self._d, name)(*args)
        if int(code):
            raise error(int(code), name)
        if not values:
            return None
        return values[0] if len(values) == 1 else tuple(values)
