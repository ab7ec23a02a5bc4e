"""The time of an exchange between two ranks against its size: by bare MPI calls, and by messages as runs send them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.ranks.launcher import watched
from peergrid.runtime.ranks.messages import MpiMail
from peergrid.runtime.ranks.ranks import Communicator, Ranks
from peergrid.runtime.ranks.settings import settings
from peergrid.schedule.ops import Queue, Receive, Send

if TYPE_CHECKING:
    from peergrid.runtime.ranks.gpu_exchanges import GpuExchange

SIZES = (8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
"""Bytes that both ranks send at once."""
WARM, MOST, SECONDS = 20, 1000, 0.2  # exchanges before any counts; at most, and seconds, of each size


@dataclass(frozen=True)
class Exchange:
    """Seconds, at the median, in which two ranks send each other so many bytes: by bare calls, and as runs do."""

    bytes: int
    bare: float
    messages: float


@dataclass(frozen=True)
class Times:
    """The exchanges of ranks 0 and 1. latency, bandwidth: seconds, bytes per second, as `plan --network` takes them;
    settings: those in force on rank 0; gpus: exchanges between GPUs, where each rank has one.
    """

    hosts: int
    exchanges: tuple[Exchange, ...]
    latency: float
    bandwidth: float
    settings: Mapping[str, str]
    gpus: tuple[GpuExchange, ...] = ()


def exchange_times(
    comm: Communicator,
    hosts: int,
    sizes: Sequence[int] = SIZES,
    gpu: tuple[Ranks, int] | None = None,
    direct: bool = False,
) -> Times:
    """Measure between ranks 0 and 1 for two sizes or more; all ranks call it.

    gpu: the ranks as those of GPUs, and the number of this one's, to measure between GPUs, too; direct: see
    `gpu_exchanges`. Raises UsageError for one rank alone.
    """
    if comm.size < 2:
        raise UsageError("Messages need two ranks, got one: mpiexec -n 2 peergrid probe mpi.")
    ranks = Ranks(comm, tuple(range(comm.size)))
    with watched(ranks, "Exchanges of messages"):
        return _timed(ranks, hosts, sizes, gpu, direct)


def _timed(ranks: Ranks, hosts: int, sizes: Sequence[int], gpu: tuple[Ranks, int] | None, direct: bool) -> Times:
    comm, found = ranks.comm, list[Exchange]()
    for size in sizes:
        ranks.gathered()
        bare = _measured(ranks, _bare(comm, size)) if comm.rank < 2 else 0.0
        mail = MpiMail(ranks, "float64")
        messages = _measured(ranks, _by_mail(mail, comm.rank, size)) if comm.rank < 2 else 0.0
        ranks.gathered()
        mail.close()
        found.append(ranks.decided(lambda: Exchange(size, bare, messages)))  # noqa: B023
    least, most = found[0], found[-1]
    between: tuple[GpuExchange, ...] = ()
    if gpu is not None:
        from peergrid.runtime.cuda.device.driver import CudaDriver
        from peergrid.runtime.ranks.gpu_exchanges import gpu_exchanges

        between = gpu_exchanges(gpu[0], CudaDriver(), gpu[1], sizes, direct, _measured)
    bandwidth = most.bytes / (most.messages - least.messages)
    return Times(hosts, tuple(found), least.messages, bandwidth, ranks.decided(settings), between)


def text(times: Times) -> str:
    """A table, and what the figures are good for."""
    rows = [
        f"{one.bytes:>10} {one.bare * 1e6:>10.1f} {one.messages * 1e6:>10.1f} {one.messages / one.bare:>8.2f}"
        for one in times.exchanges
    ]
    where = "one host" if times.hosts == 1 else f"{times.hosts} hosts"
    return "\n".join(
        [
            f"Exchanges of ranks 0 and 1 on {where}, both ways at once: median microseconds",
            f"{'bytes':>10} {'bare MPI':>10} {'messages':>10} {'ratio':>8}",
            *rows,
            *_between_gpus(times.gpus),
            *(f"In force: {key}={value}" for key, value in times.settings.items()),
            f"For forecasts: peergrid plan MODEL.toml --nodes N --network {times.latency:.2g},{times.bandwidth:.2g}",
        ]
    )


def _between_gpus(exchanges: Sequence[GpuExchange]) -> Iterator[str]:
    """The same from GPU to GPU."""
    if exchanges:
        yield "From GPU to GPU: staged by hand, by address (CUDA IPC), and by MPI that is given GPU memory"
        yield f"{'bytes':>10} {'staged':>10} {'address':>10} {'direct':>10}"
    for one in exchanges:
        ways = ("-" if way is None else f"{way * 1e6:.1f}" for way in (one.staged, one.by_address, one.direct))
        yield f"{one.bytes:>10} " + " ".join(f"{way:>10}" for way in ways)


def _measured(ranks: Ranks, exchange: Callable[[], None]) -> float:
    """Seconds of an exchange at the median; both ranks make as many."""
    peer, count = 1 - ranks.comm.rank, np.zeros(1, np.int64)
    for _ in range(WARM):
        exchange()
    started = time.perf_counter()
    exchange()
    if ranks.comm.rank == 0:
        count[0] = max(10, min(MOST, SECONDS / (time.perf_counter() - started)))
        ranks.finish(ranks.comm.Isend(count, peer, 1))
    else:
        ranks.finish(ranks.comm.Irecv(count, peer, 1))
    samples = []
    for _ in range(int(count[0])):
        started = time.perf_counter()
        exchange()
        samples.append(time.perf_counter() - started)
    return median(samples)


def _bare(comm: Communicator, size: int) -> Callable[[], None]:
    from mpi4py import MPI

    peer, out, into = 1 - comm.rank, np.ones(size, np.uint8), np.zeros(size, np.uint8)

    def exchange() -> None:
        MPI.Request.Waitall([comm.Irecv(into, peer, 2), comm.Isend(out, peer, 2)])

    return exchange


def _by_mail(mail: MpiMail, rank: int, size: int) -> Callable[[], None]:
    """The exchange of a step between two devices, without a device."""
    peer, box = 1 - rank, Box((0,), (size // 8,))
    out, into = np.ones(size // 8), np.zeros(size // 8)
    sent = Send(0, Queue(rank, "exchange"), "u", 0, 0, rank, box, peer, box, rank)
    received = Receive(0, Queue(rank, "exchange"), "u", 0, 0, peer, box, rank, box, peer)

    def exchange() -> None:
        while not mail.sent(sent, out, (0, 0)):
            pass
        while (letter := mail.arrived(received)) is None:
            pass
        into[...] = letter[0]

    return exchange
