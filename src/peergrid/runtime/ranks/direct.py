"""GPU memory given to MPI: only after a test message between all ranks has arrived intact.

An MPI that was not built for it copies such addresses as if they were its own, and the process ends by a signal; what
it says of itself is no guide, since its transports may be replaced without its knowledge.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.ranks.ranks import Ranks

SIZES = (64, 4 << 10, 1 << 20)  # bytes: transports take other ways for small messages than for large ones


def require_intact(ranks: Ranks, driver: CudaDriver) -> None:
    """Send test messages in a ring of all ranks, from the memory of one current GPU to that of the next.

    Raises UsageError, on all ranks, where one does not arrive intact. Where the MPI library ends the process by a
    signal instead, the trace that Python prints names this function.
    """
    with _traced_crashes():
        found = [_arrives(ranks, driver, size) for size in SIZES]  # all of them, as the others do
    wrong = [str(rank) for rank, right in enumerate(ranks.allgather(all(found))) if not right]
    if wrong:
        raise UsageError(
            f"The route 'mpi-direct' gives GPU memory to MPI, but a test message did not arrive intact on rank "
            f"{', '.join(wrong)}: this MPI, or its transport, is not built for it; use the route 'mpi' or 'nccl'."
        )


def _arrives(ranks: Ranks, driver: CudaDriver, size: int) -> bool:
    from mpi4py import MPI

    comm = ranks.comm
    addresses = driver.allocate(size), driver.allocate(size)
    try:
        driver.upload(addresses[0], _pattern(comm.rank, size))
        driver.upload(addresses[1], np.zeros(size, np.uint8))
        out, into = (MPI.buffer.fromaddress(address, size) for address in addresses)
        arriving = comm.Irecv(into, (comm.rank - 1) % comm.size, size)
        leaving = comm.Isend(out, (comm.rank + 1) % comm.size, size)
        ranks.finish(arriving)
        ranks.finish(leaving)
        found = np.zeros(size, np.uint8)
        driver.download(found, addresses[1])
    finally:
        for address in addresses:
            driver.free(address)
    return bool((found == _pattern((comm.rank - 1) % comm.size, size)).all())


def _pattern(rank: int, size: int) -> Array:
    return (np.arange(size) * 7 + rank + 1).astype(np.uint8)


@contextmanager
def _traced_crashes() -> Iterator[None]:
    """While inside, a signal that ends the process leaves a trace of Python."""
    before = faulthandler.is_enabled()
    faulthandler.enable()
    try:
        yield
    finally:
        if not before:
            faulthandler.disable()
