"""NVSHMEM among ranks that have one GPU each: the symmetric heap, and the kernel that puts messages into it."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from peergrid.codegen.cuda import put
from peergrid.codegen.nvrtc import IMPORTING, link, relocatable_cubin
from peergrid.errors import DeviceFault, DoesNotFit, PeergridError, UsageError, extra
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.ranks.launcher import watched
from peergrid.runtime.ranks.ranks import Communicator, Ranks

HEADERS = ("nvshmem", "cudart", "cccl")
FUNCTIONS = "libnvshmem_device.a"  # for kernels, beside the headers
FIRST_VERSION = 1 << 16  # of the library's structs, with their sizes in the lower bits
NAME_BYTES, ATTRIBUTES_BYTES = 128, 144
VERSIONS = {0: ATTRIBUTES_BYTES, 16: 128, 24: 24}  # of the attributes, of their arguments, and of those of names


class Nvshmem:
    """The library in this process, which all ranks start together, each with its GPU current.

    It starts once, and ends with the process, when it waits for the other ranks.
    Raises UsageError, on all ranks, where a rank has several GPUs, or no NVSHMEM.
    """

    _started: ClassVar[Nvshmem | None] = None

    def __init__(self, ranks: Ranks) -> None:
        missing = sorted({text for text in ranks.allgather(_missing()) if text})
        if missing:
            raise UsageError(f"The route 'nvshmem' needs NVSHMEM on every rank: {missing[0]}; or use 'nccl'.")
        if len(ranks.of_device) != ranks.comm.size:
            raise UsageError("The route 'nvshmem' needs one GPU on every rank: start a rank for each, or use 'mpi'.")
        self._ranks, self._free, self._kernel = ranks, set[int](), 0
        with watched(ranks, "The start of NVSHMEM"):
            self._library = _joined(ranks)
            self._first = int(self._library.calloc(1, 8))

    @classmethod
    def of(cls, ranks: Ranks) -> Nvshmem:
        """That of these ranks. Raises UsageError where an earlier run started it with others."""
        if cls._started is None:
            cls._started = cls(ranks)
        before, now = (_place(one) for one in (cls._started._ranks.comm, ranks.comm))
        if before != now:
            raise UsageError("NVSHMEM joins the ranks of the first run in a process: give all runs the same comm.")
        return cls._started

    def allocate(self, count: int) -> int:
        """The address of zeroed bytes, at the same place in the heap of each rank; all call it, with one count.

        What all ranks have freed is given back first. Raises DoesNotFit where a rank has no room.
        """
        freed = self._ranks.allgather({pointer - self._first for pointer in self._free})
        with watched(self._ranks, "An allocation of NVSHMEM"):
            for place in sorted(set.intersection(*freed)):
                self._free.remove(self._first + place)
                self._library.free(self._first + place)
            found = int(self._library.calloc(1, count))
        if not found:
            raise DoesNotFit(f"NVSHMEM has no room for {count} bytes on every GPU: use more GPUs, or the route 'nccl'.")
        return found

    def free(self, pointer: int) -> None:
        """Leave memory to the next allocation, since the library waits for all ranks when it gives it back."""
        self._free.add(pointer)

    def kernel(self, driver: CudaDriver, architecture: str) -> int:
        """The kernel that moves messages, for the current GPU; it stays loaded, as the library does."""
        if not self._kernel:
            headers = [Path(found) for name in HEADERS if (found := _headers(name))]
            compiled = relocatable_cubin(put.SOURCE, architecture, headers)
            module = driver.load(link(compiled, architecture, headers[0].parent / "lib" / FUNCTIONS))
            code = self._library.cumodule_init(module)
            if code:
                raise DeviceFault(f"NVSHMEM did not initialise the kernel that puts messages: code {code}.")
            self._kernel = driver.function(module, put.ENTRY)
        return self._kernel


def _joined(ranks: Ranks) -> Any:
    """The bindings of the library, which has joined all ranks by a name that rank 0 gives."""
    from nvshmem import bindings

    name, attributes = bindings.uniqueid(), bindings.InitAttr()
    _versioned(name.ptr, NAME_BYTES, {0: NAME_BYTES})
    _versioned(attributes.ptr, ATTRIBUTES_BYTES, VERSIONS)

    def fresh() -> bytes:
        bindings.get_uniqueid(name.ptr)
        return ctypes.string_at(name.ptr, NAME_BYTES)

    ctypes.memmove(name.ptr, ranks.decided(fresh), NAME_BYTES)
    bindings.set_attr_uniqueid_args(ranks.comm.rank, ranks.comm.size, name.ptr, attributes.ptr)
    bindings.hostlib_init_attr(bindings.Flags.INIT_WITH_UNIQUEID, attributes.ptr)
    driver = CudaDriver()
    atexit.register(_end, ranks, bindings, driver, driver.current())
    return bindings


def _end(ranks: Ranks, library: Any, driver: CudaDriver, context: int) -> None:
    """End the library, on all ranks: what it leaves to the end of a process crashes it."""
    with suppress(PeergridError), watched(ranks, "The end of NVSHMEM"):
        driver.make_current(context)
        library.hostlib_finalize()


def _versioned(address: int, count: int, versions: Mapping[int, int]) -> None:
    """Zero a struct of the library, whose bindings leave it as memory was, but for versions: sizes, by their place."""
    ctypes.memset(address, 0, count)
    for place, size in versions.items():
        ctypes.c_int32.from_address(address + place).value = FIRST_VERSION + size


def _missing() -> str:
    """The reason why NVSHMEM is not usable here; empty where it is."""
    try:
        with IMPORTING:  # kernels are compiled in other threads meanwhile
            from cuda.pathfinder import load_nvidia_dynamic_lib
            from nvshmem import bindings

            load_nvidia_dynamic_lib("nvshmem_host")
            bindings.init_status()
    except ImportError as error:
        return f"{error} ({extra('nvshmem')})"
    except RuntimeError as error:
        return f"{error}"
    absent = [name for name in HEADERS if not _headers(name)]
    return f"no headers of {', '.join(absent)} ({extra('nvshmem')})" if absent else ""


def _headers(name: str) -> str | None:
    from cuda.pathfinder import find_nvidia_header_directory

    found: str | None = find_nvidia_header_directory(name)
    return found


def _place(comm: Communicator) -> tuple[int, int]:
    return comm.rank, comm.size
