"""What the measuring programs share: one GPU through the driver, helper kernels, the copy bandwidth."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

ROOT = Path(__file__).resolve().parents[2]
if importlib.util.find_spec("numba") is None:
    # Code generation needs NumPy alone; without the other dependencies the packages' front doors stay shut.
    for package in ("peergrid", "peergrid.codegen", "peergrid.models.fdtd"):
        bare = types.ModuleType(package)
        bare.__path__ = [str(ROOT / "src" / package.replace(".", "/"))]
        sys.modules[package] = bare
else:
    sys.path.insert(0, str(ROOT / "src"))

from peergrid.codegen.nvrtc import compile_cubin  # noqa: E402

HELPERS = """
extern "C" __global__ void noise(float* p, long long n, unsigned seed, float scale, float shift, long long first) {
  for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < n; k += (long long)gridDim.x * blockDim.x) {
    const long long i = first + k;
    unsigned h = (unsigned)(i * 2654435761u) ^ (unsigned)(i >> 16) ^ seed;
    h ^= h >> 16; h *= 0x7feb352du; h ^= h >> 15; h *= 0x846ca68bu; h ^= h >> 16;
    p[k] = shift + scale * ((h >> 8) * 5.9604645e-8f);
  }
}
extern "C" __global__ void differ(const unsigned* a, const unsigned* b, int rows, int columns, long long pitch,
                                  unsigned long long* count) {
  unsigned long long found = 0;
  for (int y = blockIdx.x; y < rows; y += gridDim.x)
    for (int x = threadIdx.x; x < columns; x += blockDim.x) found += a[y * pitch + x] != b[y * pitch + x];
  if (found) atomicAdd(count, found);
}
extern "C" __global__ void copy(const float4* a, float4* b, long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
    b[i] = a[i];
}
extern "C" __global__ void jacobi(const float* u, float* v, int rows, int columns, long long pitch) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const float* p = u + y * pitch + x;
  const bool inside = x > 0 && y > 0 && x < columns - 1 && y < rows - 1;
  v[y * pitch + x] = inside ? 0.25f * ((p[-1] + p[1]) + (p[-pitch] + p[pitch])) : *p;
}
extern "C" __global__ void magnetic(const float* ez, const float* hx, const float* hy, float* nx, float* ny, int rows,
                                    int columns, long long pitch) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const long long i = y * pitch + x;
  const bool inside = x < columns - 1 && y < rows - 1;
  nx[i] = inside ? hx[i] - 0.5f * (ez[i + 1] - ez[i]) : hx[i];
  ny[i] = inside ? hy[i] + 0.5f * (ez[i + pitch] - ez[i]) : hy[i];
}
extern "C" __global__ void electric(const float* ez, const float* hx, const float* hy, const float* ca, const float* cb,
                                    float* nz, int rows, int columns, long long pitch) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const long long i = y * pitch + x;
  const bool inside = x > 0 && y > 0;
  nz[i] = inside ? ca[i] * ez[i] + cb[i] * ((hy[i] - hy[i - pitch]) - (hx[i] - hx[i - 1])) : ez[i];
}
"""


def check(result: tuple[Any, ...]) -> Any:
    """The value of a driver call; an error as an exception."""
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA driver: {status.name}")
    return values[0] if values else None


class Module:
    """A compiled program on the device."""

    def __init__(self, cubin: bytes) -> None:
        self.cubin = cubin
        self.handle = check(driver.cuModuleLoadData(cubin))

    def function(self, name: str, shared: int = 0, *, whole: bool = True) -> Any:
        found = check(driver.cuModuleGetFunction(self.handle, name.encode()))
        if shared and whole:  # kernels share a multiprocessor only where they want the same division of its memory
            what = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            check(driver.cuFuncSetAttribute(found, what, 100))
        if shared > 48 * 1024:
            what = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(driver.cuFuncSetAttribute(found, what, shared))
        return found


def start(function: Any, grid: tuple[int, int], block: tuple[int, int], shared: int, stream: Any, *values: Any) -> None:
    """Launch a kernel; values are ctypes numbers, or NumPy records for structs passed by value."""
    places = [v.ctypes.data if isinstance(v, np.ndarray) else ctypes.addressof(v) for v in values]
    table = (ctypes.c_void_p * len(places))(*places)
    check(driver.cuLaunchKernel(function, *grid, 1, *block, 1, shared, stream, ctypes.addressof(table), 0))


@dataclass
class Device:
    """A GPU with a main stream, urgent ones beside it, two timing events and the helper kernels."""

    number: int = 0
    arch: str = ""
    name: str = ""
    multiprocessors: int = 0
    shared_limit: int = 0
    buffers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(self.number))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        self.use()
        of, kind = driver.cuDeviceGetAttribute, driver.CUdevice_attribute
        major = check(of(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device))
        minor = check(of(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device))
        self.arch = f"sm_{major}{minor}"
        self.name = check(driver.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        self.multiprocessors = check(of(kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, self.device))
        # Streams that wait for the default one, on which copies and fills return before they are done.
        self.main, self.side, third = (check(driver.cuStreamCreateWithPriority(0, urgency)) for urgency in (0, -1, -1))
        self.sides = (self.side, third)
        self.begin, self.end = (check(driver.cuEventCreate(0)) for _ in range(2))
        self.fork, self.join, third = (check(driver.cuEventCreate(2)) for _ in range(3))
        self.joins = (self.join, third)
        self.helpers = Module(compile_cubin(HELPERS, self.arch))

    def use(self) -> None:
        """Make the calls that follow in this thread concern this GPU."""
        check(driver.cuCtxSetCurrent(self.context))

    def allocate(self, size: int) -> int:
        pointer = check(driver.cuMemAlloc(size))
        self.buffers.append(pointer)
        return int(pointer)

    def upload(self, values: np.ndarray) -> int:
        pointer = self.allocate(max(values.nbytes, 16))
        if values.nbytes:
            check(driver.cuMemcpyHtoD(pointer, values.ctypes.data, values.nbytes))
        return pointer

    def noise(self, base: int, n: int, seed: int, scale: float, shift: float, first: int = 0) -> None:
        """Fill with numbers in [shift, shift + scale) that depend on the seed and on the place from `first` on."""
        c = ctypes
        start(self.helpers.function("noise"), (2048, 1), (256, 1), 0, self.main, c.c_void_p(base), c.c_longlong(n),
              c.c_uint(seed), c.c_float(scale), c.c_float(shift), c.c_longlong(first))  # fmt: skip

    def beside(self, bodies: Sequence[Callable[[Any], None]]) -> None:
        """Work on streams: the first on the main one, the others beside it, all done before what follows."""
        check(driver.cuEventRecord(self.fork, self.main))
        streams = (self.main, *self.sides[: len(bodies) - 1])
        for stream in streams[1:]:
            check(driver.cuStreamWaitEvent(stream, self.fork, 0))
        for body, stream in zip(bodies, streams, strict=True):
            body(stream)
        for stream, join in zip(streams[1:], self.joins, strict=False):
            check(driver.cuEventRecord(join, stream))
            check(driver.cuStreamWaitEvent(self.main, join, 0))

    def release(self) -> None:
        self.sync()
        for pointer in self.buffers:
            check(driver.cuMemFree(pointer))
        self.buffers.clear()

    def sync(self) -> None:
        self.use()
        check(driver.cuCtxSynchronize())

    def timed(self, body: Callable[[], None], repeats: int = 5) -> float:
        """The median of the milliseconds that the body takes on the main stream."""
        found = []
        for _ in range(repeats):
            check(driver.cuEventRecord(self.begin, self.main))
            body()
            check(driver.cuEventRecord(self.end, self.main))
            check(driver.cuEventSynchronize(self.end))
            found.append(check(driver.cuEventElapsedTime(self.begin, self.end)))
        return float(np.median(found))


def copy_rate(device: Device) -> dict[str, float]:
    """GB/s of reading and writing 2 GiB: by the copy engine's call and by a kernel."""
    size = 2 << 30
    one, two = device.allocate(size), device.allocate(size)
    function = device.helpers.function("copy")
    c = ctypes

    def by_kernel() -> None:
        start(function, (device.multiprocessors * 16, 1), (512, 1), 0, device.main, c.c_void_p(one), c.c_void_p(two),
              c.c_longlong(size // 16))  # fmt: skip

    rates = {
        "memcpy": device.timed(lambda: check(driver.cuMemcpyDtoDAsync(two, one, size, device.main)), 9),
        "kernel": device.timed(by_kernel, 9),
    }
    device.release()
    return {name: 2 * size / ms / 1e6 for name, ms in rates.items()}
