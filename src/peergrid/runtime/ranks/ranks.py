"""The devices of a run by the rank, in a communicator, that they belong to."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from peergrid.errors import DeviceFault, UsageError
from peergrid.runtime.devices import Devices

POLL = 1e-4  # seconds between two questions whether all are there


class Communicator(Protocol):
    """The part of `mpi4py.MPI.Comm` that is used; names are MPI's."""

    rank: int
    size: int

    def allgather(self, value: Any) -> list[Any]: ...
    def bcast(self, value: Any, root: int = 0) -> Any: ...
    def Bcast(self, buffer: Any, root: int = 0) -> None: ...  # noqa: N802
    def Send(self, buffer: Any, dest: int, tag: int = 0) -> None: ...  # noqa: N802
    def Recv(self, buffer: Any, source: int, tag: int = 0) -> None: ...  # noqa: N802
    def Isend(self, buffer: Any, dest: int, tag: int = 0) -> Any: ...  # noqa: N802
    def Irecv(self, buffer: Any, source: int, tag: int = 0) -> Any: ...  # noqa: N802
    def Ibarrier(self) -> Any: ...  # noqa: N802
    def Dup(self) -> Communicator: ...  # noqa: N802
    def Free(self) -> None: ...  # noqa: N802
    def Abort(self, errorcode: int = 0) -> None: ...  # noqa: N802


@dataclass(frozen=True)
class Ranks:
    """The devices of all ranks, numbered rank by rank, and the communicator that joins these.

    of_device: the rank of each device; timeout: seconds that ranks wait for each other between the parts of a run.
    """

    comm: Communicator
    of_device: tuple[int, ...]
    timeout: float = 300.0

    @property
    def mine(self) -> tuple[int, ...]:
        """The devices of this rank."""
        return tuple(device for device, rank in enumerate(self.of_device) if rank == self.comm.rank)

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks. Raises DeviceFault where one of them does not come."""
        self.gathered()
        return self.comm.allgather(value)

    def gathered(self) -> None:
        """Wait until all ranks are here. Raises DeviceFault where one of them does not come."""
        arrived, began = self.comm.Ibarrier(), time.monotonic()
        while not arrived.Test():
            if time.monotonic() - began > self.timeout:
                raise DeviceFault(
                    f"Nothing moved for {self.timeout:g} s: another rank does not come to where this one waits; see "
                    "which process hangs, or is gone, and start the run anew."
                )
            time.sleep(POLL)

    def same(self, subject: str, value: Hashable) -> None:
        """Raise UsageError, on all ranks, where they do not agree on a value."""
        found = self.allgather(value)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise UsageError(
                    f"All ranks are expected to run the same, but {subject} of rank {rank} differs from that of rank "
                    "0: start one script with one model, one version and the same options on every rank."
                )


def devices_of_all(comm: Communicator, own: Devices) -> tuple[Devices, Ranks]:
    """The devices of all ranks as one list; own: those of this rank.

    Raises UsageError, on all ranks, where any of them asks for GPUs.
    """
    found = comm.allgather((own.kind, own.count))
    if any(kind == "cuda" for kind, _ in found):
        raise UsageError(
            "Ranks share a grid on virtual devices alone so far, got GPUs; give each rank devices such as 'cpu:1', or "
            "run one process for all GPUs of a machine."
        )
    of_device = tuple(rank for rank, (_, count) in enumerate(found) for _ in range(count))
    return Devices("cpu", tuple(range(len(of_device)))), Ranks(comm, of_device)
