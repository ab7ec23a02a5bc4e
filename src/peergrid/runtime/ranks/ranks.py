"""The devices of a run by the rank, in a communicator, that they belong to."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, get_args

import numpy as np

from peergrid.errors import DeviceFault, UsageError
from peergrid.runtime.devices import Devices
from peergrid.runtime.ranks.gpus import part, together
from peergrid.schedule.ops import Carrier

Decision = TypeVar("Decision")
POLL = 1e-3  # seconds between two questions whether all are there, at most; and a twentieth of those waited so far
SOON = 2e-3  # seconds for which one asks without a pause
SHARED = "/dev/shm/mpich_shm_"
WAIT = "PEERGRID_RANK_TIMEOUT"


def waiting_time(environment: Mapping[str, str] = os.environ) -> float:
    """Seconds that ranks wait for each other between the parts of a run: 300, or the variable PEERGRID_RANK_TIMEOUT.

    Raises UsageError where that is no number above 0.
    """
    given = environment.get(WAIT, "300")
    with suppress(ValueError):
        if (seconds := float(given)) > 0:
            return seconds
    raise UsageError(f"{WAIT} takes seconds, a number above 0, got '{given}'.")


class Communicator(Protocol):
    """The part of `mpi4py.MPI.Comm` that is used; names are MPI's. Nothing in it waits: `Ranks.finish` does."""

    rank: int
    size: int

    def Isend(self, buffer: Any, /, dest: int, tag: int = 0) -> Any: ...  # noqa: N802
    def Irecv(self, buffer: Any, /, source: int, tag: int = 0) -> Any: ...  # noqa: N802
    def Ibarrier(self) -> Any: ...  # noqa: N802
    def Ibcast(self, buffer: Any, /, root: int = 0) -> Any: ...  # noqa: N802
    def Iallgather(self, sent: Any, received: Any, /) -> Any: ...  # noqa: N802
    def Iallgatherv(self, sent: Any, received: Any, /) -> Any: ...  # noqa: N802
    def Idup(self) -> tuple[Communicator, Any]: ...  # noqa: N802
    def Free(self) -> None: ...  # noqa: N802
    def Abort(self, errorcode: int = 0, /) -> Any: ...  # noqa: N802


@dataclass(frozen=True)
class Ranks:
    """The devices of all ranks, numbered rank by rank, and the communicator that joins these.

    of_device: the rank of each device; timeout: seconds that ranks wait for each other between the parts of a run, see
    `waiting_time`; by_address: whether all devices are GPUs that address each other's memory; carrier: of messages.
    """

    comm: Communicator
    of_device: tuple[int, ...] = ()
    timeout: float = field(default_factory=waiting_time)
    by_address: bool = False
    carrier: Carrier = "mpi"

    @property
    def mine(self) -> tuple[int, ...]:
        """The devices of this rank."""
        return tuple(device for device, rank in enumerate(self.of_device) if rank == self.comm.rank)

    def by(self, route: str | None, kind: str) -> Ranks:
        """These ranks with halos between them by the requested route. Raises UsageError where the devices have none."""
        if route in ("nccl", "nvshmem", "mpi-direct") and kind != "cuda":
            raise UsageError(f"The route '{route}' joins GPUs; virtual devices of several ranks exchange by 'mpi'.")
        if route == "host":
            return replace(self, by_address=False)
        return replace(self, by_address=False, carrier=cast(Carrier, route)) if route in get_args(Carrier) else self

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks. Raises DeviceFault where one of them does not come."""
        mine = np.frombuffer(pickle.dumps(value), np.uint8)
        counts = np.empty(self.comm.size, np.int64)
        self.finish(self.comm.Iallgather(np.array([mine.size]), counts))
        ends = np.cumsum(counts)
        whole = np.empty(ends[-1], np.uint8)
        self.finish(self.comm.Iallgatherv(mine, [whole, (counts, ends - counts)]))
        return [pickle.loads(whole[end - count : end].tobytes()) for count, end in zip(counts, ends, strict=True)]

    def decided(self, decide: Callable[[], Decision]) -> Decision:
        """The answer of rank 0, for all: of what is measured, or looked up, where ranks may differ."""
        if self.comm.rank == 0:
            answer = decide()
            said = np.frombuffer(pickle.dumps(answer), np.uint8)
            self.finish(self.comm.Ibcast(np.array([said.size])))
            self.finish(self.comm.Ibcast(said))
            return answer
        self.finish(self.comm.Ibcast(count := np.empty(1, np.int64)))
        self.finish(self.comm.Ibcast(heard := np.empty(count[0], np.uint8)))
        decision: Decision = pickle.loads(heard.tobytes())
        return decision

    def another(self) -> Communicator:
        """A communicator of the same ranks, whose messages are apart. Raises DeviceFault where a rank does not come."""
        found, request = self.comm.Idup()
        self.finish(request)
        return found

    def gathered(self) -> None:
        """Wait until all ranks are here. Raises DeviceFault where one of them does not come."""
        self.finish(self.comm.Ibarrier())

    def finish(self, request: Any) -> None:
        """Wait for what all ranks take part in. Raises DeviceFault where one of them does not come."""
        began = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - began
            if waited > self.timeout:
                raise DeviceFault(
                    f"Nothing moved for {self.timeout:g} s: another rank does not come to where this one waits; see "
                    f"which process hangs, or has ended, and start the run again, with a larger {WAIT} if it is slow."
                )
            time.sleep(min(waited / 20, POLL) if waited > SOON else 0)

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

    Raises UsageError, on all ranks, where they do not go together (see `gpus.together`), DeviceFault where one does not
    come.
    """
    parts = Ranks(comm).allgather(part(own))
    take_names()  # all are past MPI's start
    devices, by_address = together(parts, comm.rank)
    of_device = tuple(rank for rank, found in enumerate(parts) for _ in range(found.devices.count))
    return devices, Ranks(comm, of_device, by_address=by_address)


def take_names() -> None:
    """Take their names from the files of shared memory that MPICH's ranks have mapped by now: nobody opens them again,
    and where ranks are killed they would stay in memory until the machine starts anew.
    """
    with suppress(OSError):
        paths = {
            words[5] for line in Path("/proc/self/maps").read_text().splitlines() if len(words := line.split()) == 6
        }
        for path in filter(lambda path: path.startswith(SHARED), paths):
            Path(path).unlink(missing_ok=True)
