"""The driver on the host for GPUs of several processes: what one exports, others map into their memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
from host_driver import HostDriver

from peergrid.codegen.cuda import put


class HostCalls:
    """NCCL's functions of the driver on the host; slots: the address of memory that all ranks share."""

    SLOT_BYTES = 64 << 16

    def __init__(self, driver: HostDriver, rank: int, size: int, slots: int) -> None:
        self._driver, self._comm = driver, np.array([rank, size, slots], np.int64)
        self.address = int(self._comm.ctypes.data)

    def entry(self, name: str) -> int:
        return self._driver.entry(name)

    def abort(self) -> None:
        """Nobody waits."""


class HostHeap:
    """NVSHMEM's heap on the host; begin: the address of memory that all ranks share, with room for that of each."""

    RANK_BYTES = 1 << 24

    def __init__(self, rank: int, begin: int) -> None:
        self._rank, self._next, self._function = rank, begin + rank * self.RANK_BYTES, 0
        self._end, self.live = self._next + self.RANK_BYTES, set[int]()

    def allocate(self, count: int) -> int:
        found, self._next = self._next, self._next + -(-count // 256) * 256
        assert self._next <= self._end
        self.live.add(found)
        return found

    def free(self, pointer: int) -> None:
        self.live.remove(pointer)

    def kernel(self, driver: HostDriver, architecture: str) -> int:
        if not self._function:
            module = driver.load(driver.compile(put.SOURCE, architecture, None))
            self._function = driver.function(module, put.ENTRY)
            ctypes.c_longlong.in_dll(driver._modules[module - 1], "heap_rank").value = self._rank
            driver.live.remove(("module", module))  # it stays, as the library does
        return self._function


class SharedHostDriver(HostDriver):
    """A `HostDriver` whose device memory lies in files; a handle is the name of one."""

    def __init__(self, gpus: int, seed: int) -> None:
        super().__init__(gpus, seed)
        self._files: dict[int, tuple[mmap.mmap, str]] = {}
        self.opened: set[int] = set()
        self.registered: set[int] = set()

    def uuid(self, ordinal: int) -> str:
        return f"host{ordinal}"

    def allocate(self, count: int) -> int:
        handle, name = tempfile.mkstemp(prefix="gpu-")
        os.truncate(handle, max(count, 16) + 512)
        address = self._mapped(handle, name)
        self.live.add(("memory", address))
        return address

    def free(self, pointer: int) -> None:
        if pointer not in self._files:
            super().free(pointer)
            return
        self._library.drain()
        self.live.remove(("memory", pointer))
        Path(self._files.pop(pointer)[1]).unlink()

    def export_memory(self, pointer: int) -> bytes:
        return self._files[pointer][1].encode()

    def open_memory(self, handle: bytes) -> int:
        address = self._mapped(os.open(handle.decode(), os.O_RDWR), "")
        self.opened.add(address)
        return address

    def close_memory(self, pointer: int) -> None:
        self.opened.remove(pointer)

    def register_host(self, pointer: int, count: int) -> None:
        assert pointer % mmap.PAGESIZE == count % mmap.PAGESIZE == 0
        self.registered.add(pointer)

    def unregister_host(self, pointer: int) -> None:
        self.registered.remove(pointer)

    def _mapped(self, handle: int, name: str) -> int:
        mapped = mmap.mmap(handle, 0)
        os.close(handle)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self._files[address] = (mapped, name)
        return address
