"""The time in which two ranks exchange bytes between their GPUs, against the size, by each way that there is."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from peergrid.runtime.cuda.device.devices import host_words
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.ranks.direct import require_intact
from peergrid.runtime.ranks.ranks import Communicator, Ranks

APART = 2 << 20  # bytes in whose multiples the driver exports memory


@dataclass(frozen=True)
class GpuExchange:
    """Seconds, at the median, in which two ranks send each other so many bytes from GPU to GPU: staged by hand through
    pinned memory and MPI; by address, a copy into the other's memory and an empty message; direct, by MPI that is given
    GPU memory. None: not reached, or not asked for.
    """

    bytes: int
    staged: float
    by_address: float | None
    direct: float | None


def gpu_exchanges(
    ranks: Ranks,
    driver: CudaDriver,
    ordinal: int,
    sizes: Sequence[int],
    direct: bool,
    measured: Callable[[Ranks, Callable[[], None]], float],
) -> tuple[GpuExchange, ...]:
    """Measure between ranks 0 and 1; all ranks call it, each with a GPU of its own.

    ordinal: of this rank's GPU; direct: whether MPI is given GPU memory, after a test message that may end the process;
    measured: how a way is timed. Raises UsageError, on all ranks, where the test message is not intact.
    """
    with ExitStack() as kept:
        kept.enter_context(driver.kept_current())
        driver.make_current(driver.retain(ordinal))
        kept.callback(driver.release, ordinal)
        if direct:
            require_intact(ranks, driver)
        ways = _Ways(ranks.comm, driver, -(-max(sizes) // APART) * APART, kept)
        handles = ranks.allgather(driver.export_memory(ways.into))
        if ranks.by_address and ranks.comm.rank < 2:
            ways.theirs = driver.open_memory(handles[1 - ranks.comm.rank])
            kept.callback(driver.close_memory, ways.theirs)
        found = []
        for size in sizes:
            taken = list[float | None]()
            for way, there in ((ways.staged, True), (ways.by_address, ranks.by_address), (ways.direct, direct)):
                ranks.gathered()
                ready = there and ranks.comm.rank < 2
                taken.append(measured(ranks, way(size)) if ready else 0.0 if there else None)
            found.append(ranks.decided(lambda: GpuExchange(size, taken[0] or 0.0, taken[1], taken[2])))  # noqa: B023
        ranks.gathered()
    return tuple(found)


class _Ways:
    """Memory of a rank for exchanges, and the exchanges; theirs: the other's `into`, where it is reached."""

    def __init__(self, comm: Communicator, driver: CudaDriver, count: int, kept: ExitStack) -> None:
        self._comm, self._driver, self._peer = comm, driver, 1 - comm.rank
        self.theirs = 0
        self.out, self.into = (self._kept(kept, driver.allocate(count), driver.free) for _ in range(2))
        self._pinned = [self._kept(kept, driver.allocate_host(count), driver.free_host) for _ in range(2)]
        self._stream = self._kept(kept, driver.create_stream(0), driver.destroy_stream)
        address, pointer = ctypes.c_void_p, ctypes.c_size_t
        self._copy = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, address)(driver.entry("cuMemcpyAsync"))

    def staged(self, size: int) -> Callable[[], None]:
        from mpi4py import MPI

        out, into = (host_words(address, size // 8) for address in self._pinned)

        def exchange() -> None:
            self._driver.download(out, self.out)
            MPI.Request.Waitall([self._comm.Irecv(into, self._peer, 3), self._comm.Isend(out, self._peer, 3)])
            self._driver.upload(self.into, into)

        return exchange

    def by_address(self, size: int) -> Callable[[], None]:
        from mpi4py import MPI

        empty = bytearray()

        def exchange() -> None:
            self._copy(self.theirs, self.out, size, self._stream)
            self._driver.synchronize()
            MPI.Request.Waitall([self._comm.Irecv(empty, self._peer, 4), self._comm.Isend(empty, self._peer, 4)])

        return exchange

    def direct(self, size: int) -> Callable[[], None]:
        from mpi4py import MPI

        out, into = (MPI.buffer.fromaddress(address, size) for address in (self.out, self.into))

        def exchange() -> None:
            MPI.Request.Waitall([self._comm.Irecv(into, self._peer, 5), self._comm.Isend(out, self._peer, 5)])

        return exchange

    def _kept(self, kept: ExitStack, handle: int, release: Callable[[int], None]) -> int:
        kept.callback(release, handle)
        return handle
