"""NCCL among ranks that have one GPU each: a communicator, and the addresses of the functions that queues are given."""

from __future__ import annotations

import ctypes
from typing import Any

from peergrid.codegen.nvrtc import IMPORTING
from peergrid.errors import DeviceFault, UsageError, extra
from peergrid.runtime.ranks.launcher import watched
from peergrid.runtime.ranks.ranks import Ranks


class Nccl:
    """A communicator whose ranks are those of MPI; made by all of them, each with its GPU current.

    Raises UsageError, on all ranks, where a rank has several GPUs, or no NCCL.
    """

    def __init__(self, ranks: Ranks) -> None:
        missing = sorted({text for text in ranks.allgather(_missing()) if text})
        if missing:
            raise UsageError(f"The route 'nccl' needs NCCL on every rank: {missing[0]}; or use 'mpi'.")
        if len(ranks.of_device) != ranks.comm.size:
            raise UsageError("The route 'nccl' needs one GPU on every rank: start a rank for each, or use 'mpi'.")
        import nccl.bindings._internal.nccl as loaded
        import nccl.core as nccl

        name = ranks.decided(lambda: bytes(nccl.get_unique_id()))
        with watched(ranks, "The start of NCCL"):
            self._comm: Any = nccl.Communicator.init(ranks.comm.size, ranks.comm.rank, nccl.UniqueId.from_bytes(name))
        self._library = ctypes.CDLL(loaded._inspect_loaded_library_path())
        self.address = int(self._comm.ptr)

    def entry(self, name: str) -> int:
        """The address of a function of NCCL."""
        found = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        if not found:
            raise DeviceFault(f"NCCL has no '{name}': update it.")
        return found

    def abort(self) -> None:
        """End what waits for a rank that does not come."""
        self._comm.abort()

    def close(self) -> None:
        self._comm.destroy()


def _missing() -> str:
    """The reason why NCCL is not usable here; empty where it is."""
    try:
        with IMPORTING:  # kernels are compiled in other threads meanwhile
            import nccl.core as nccl

        nccl.get_unique_id()
    except ImportError as error:
        return f"{error} ({extra('nccl')})"
    except RuntimeError as error:
        return f"{error}"
    return ""
