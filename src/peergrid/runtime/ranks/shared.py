"""Host memory that the ranks of one host share, and what executors of GPUs ask of the other ranks."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.device.processes import Calls, Heap, Line
from peergrid.runtime.ranks.carrier import Carrier
from peergrid.runtime.ranks.direct import require_intact
from peergrid.runtime.ranks.nccl import Nccl
from peergrid.runtime.ranks.nvshmem import Nvshmem
from peergrid.runtime.ranks.ranks import Ranks

MEMORY = Path("/dev/shm")


class RanksAsProcesses:
    """Ranks as `runtime.cuda.device.processes.Processes`."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._kept: list[mmap.mmap] = []
        self.rank, self.of_device, self.mine = ranks.comm.rank, ranks.of_device, ranks.mine
        self.by_address = ranks.by_address
        self._carrier: Carrier | None = None
        self._nccl: Nccl | None = None
        self._nvshmem: Nvshmem | None = None

    @property
    def calls(self) -> Calls | None:
        if self._ranks.carrier == "nccl" and self._nccl is None:
            self._nccl = Nccl(self._ranks)
        return self._nccl

    @property
    def heap(self) -> Heap | None:
        if self._ranks.carrier == "nvshmem" and self._nvshmem is None:
            self._nvshmem = Nvshmem.of(self._ranks)
        return self._nvshmem

    def allgather(self, value: Any) -> list[Any]:
        return self._ranks.allgather(value)

    @property
    def direct(self) -> bool:
        return self._ranks.carrier == "mpi-direct"

    def try_direct(self, driver: CudaDriver) -> None:
        require_intact(self._ranks, driver)

    def carry(self, lines: Sequence[Line], enter: Callable[[], object]) -> AbstractContextManager[None]:
        if self._carrier is None:
            self._carrier = Carrier(self._ranks, self.direct)
        return self._carrier.carry(lines, enter)

    def shared(self, count: int) -> int:
        mapped = shared_memory(self._ranks, count)
        self._kept.append(mapped)
        return address_of(mapped)


def shared_memory(ranks: Ranks, count: int) -> mmap.mmap:
    """So many zeroed bytes that all ranks of the host see; they have no name, so that nothing is left of them."""
    name, handle = "", -1
    if ranks.comm.rank == 0:
        handle, name = tempfile.mkstemp(prefix="peergrid-", dir=MEMORY if MEMORY.is_dir() else None)
        os.truncate(handle, count)
    try:
        (name, *_) = ranks.allgather(name)
        if handle < 0:
            handle = os.open(name, os.O_RDWR)
        mapped = mmap.mmap(handle, count)
        ranks.gathered()
    finally:
        if handle >= 0:
            os.close(handle)
        if ranks.comm.rank == 0:
            os.unlink(name)
    return mapped


def address_of(mapped: mmap.mmap) -> int:
    """The address at which mapped memory begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(mapped))
