"""A CUDA driver of this host for relaxations: memory is the host's, launches run the kernels on fibres at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from host_kernels import COMPILER, kernels, library

from peergrid.spins.gpus import source

ENDING = """
static void kernel(const void* const* s) { ENTRY((const Relaxation*)s[0], *(const u64*)s[1]); }
extern "C" const char* launch(int devices, int blocks, const void* const* structs) {
  return host::together(kernel, structs, 2, devices, blocks, 256, 0);
}
"""


@cache
def compiled(entry: str) -> Any:
    """The launch function of a kernel: devices, blocks, and for each device where its struct and the step lie."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    launch = ctypes.CDLL(str(library(kernels(source()) + ENDING.replace("ENTRY", entry)))).launch
    launch.restype = ctypes.c_char_p
    return launch


class SpinDriver:
    """What `peergrid.probe.cuda.devices` calls of the driver, for GPUs that are this host."""

    def __init__(self, gpus: int) -> None:
        self.held: dict[int, np.ndarray[Any, Any]] = {}
        self.copied, self.current = 0, -1
        self.answers: dict[str, Callable[..., Any]] = {
            "cuDeviceGetCount": lambda: gpus,
            "cuDevicePrimaryCtxRetain": lambda gpu: gpu,
            "cuCtxGetCurrent": lambda: self.current,
            "cuCtxSetCurrent": lambda context: setattr(self, "current", context),
            "cuDeviceCanAccessPeer": lambda one, other: 1,
            "cuMemAlloc": self._allocate,
            "cuMemFree": lambda address: self.held.pop(address) is None,
            "cuMemsetD32": lambda at, value, words: ctypes.memmove(
                at, np.full(words, value, np.uint32).ctypes.data, 4 * words
            ),
            "cuMemcpyDtoH": ctypes.memmove,
            "cuMemcpyHtoD": ctypes.memmove,
            "cuMemcpyAsync": self._copy,
            "cuStreamCreate": lambda flags: 1,
            "cuEventCreate": lambda flags: 1,
            "cuModuleLoadData": lambda code: 1,
            "cuModuleGetFunction": lambda module, name: name.decode(),
            "cuLaunchKernel": self._launch,
        }

    def __getattr__(self, name: str) -> Any:
        answer = self.answers.get(name)
        return (lambda *given: (0, answer(*given))) if answer else (lambda *given: (0,))

    CUdevice_attribute = None

    def cuDeviceGetAttribute(self, key: object, device: int) -> tuple[int, int]:  # noqa: N802
        return 0, 9

    def _allocate(self, size: int) -> int:
        block = np.full(size + 64, 0xAA, np.uint8)
        address = block.ctypes.data + -block.ctypes.data % 64
        self.held[address] = block
        return int(address)

    def _copy(self, to: int, source: int, size: int, stream: object) -> None:
        ctypes.memmove(to, source, size)
        self.copied += size

    def _launch(self, entry: str, wide: int, *rest: Any) -> None:
        (struct, step), _ = rest[-2]
        number = np.array([step], np.uint64)
        fault = compiled(entry)(1, wide, (ctypes.c_void_p * 2)(struct, number.ctypes.data))
        assert fault is None
