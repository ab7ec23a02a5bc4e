"""GPU memory given to MPI, and libraries that are loaded while kernels are compiled."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from peergrid.codegen.nvrtc import IMPORTING
from peergrid.errors import UsageError
from peergrid.runtime.ranks import nccl
from peergrid.runtime.ranks.direct import require_intact
from peergrid.runtime.ranks.ranks import Ranks


class Memory:
    """Host memory in place of a GPU's; loses: whether what is uploaded stays where it was."""

    def __init__(self, loses: bool) -> None:
        self._loses, self.live = loses, dict[int, np.ndarray]()

    def allocate(self, count: int) -> int:
        made = np.zeros(count, np.uint8)
        self.live[made.ctypes.data] = made
        return int(made.ctypes.data)

    def free(self, pointer: int) -> None:
        del self.live[pointer]

    def upload(self, pointer: int, values: np.ndarray) -> None:
        if not self._loses:
            self.live[pointer][:] = values

    def download(self, values: np.ndarray, pointer: int) -> None:
        values[:] = self.live[pointer]


@pytest.fixture
def alone() -> Ranks:
    """One rank, which sends to itself."""
    mpi = pytest.importorskip("mpi4py.MPI")
    return Ranks(mpi.COMM_SELF, (0,))


def test_gpu_memory_is_given_to_mpi_where_a_test_message_is_intact(alone: Ranks) -> None:
    memory = Memory(loses=False)
    require_intact(alone, memory)
    assert not memory.live
    with pytest.raises(UsageError, match="did not arrive intact on rank 0"):
        require_intact(alone, Memory(loses=True))


def test_nccl_is_not_imported_while_another_thread_imports_cuda_core() -> None:
    found: list[str] = []
    with IMPORTING:
        thread = threading.Thread(target=lambda: found.append(nccl._missing()))
        thread.start()
        thread.join(0.05)
        assert not found
    thread.join()
    assert len(found) == 1
