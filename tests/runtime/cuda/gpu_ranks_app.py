"""Ranks with GPUs that the host stands for: every case has to leave the bits of one device.

mpiexec -n 2 python gpu_ranks_app.py '[["heat_fixed", "overlap", 2, 1, "address"]]'
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import closing

import numpy as np
from executions import STEPS, carry_through, expected
from mpi4py import MPI
from runtime_problems import PROBLEMS
from shared_host_driver import HostCalls, HostHeap, SharedHostDriver

from peergrid import Options
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.devices import Devices
from peergrid.runtime.own_kernel import OwnKernelRun, Place
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.gpu_exchanges import gpu_exchanges
from peergrid.runtime.ranks.launcher import abort_on_error
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.runtime.ranks.shared import RanksAsProcesses
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.proved import require_right
from peergrid.sparse import CsrMatrix, Products
from peergrid.spins import Relaxation, random_graph


class InGroups(RanksAsProcesses):
    """Ranks whose queues exchange by themselves."""

    def __init__(self, ranks: Ranks, driver: SharedHostDriver, route: str) -> None:
        super().__init__(ranks)
        self._driver, self._calls, self._heap = driver, None, None
        rank, size = ranks.comm.rank, ranks.comm.size
        if route == "nccl":
            self._calls = HostCalls(driver, rank, size, self.shared(size * size * HostCalls.SLOT_BYTES))
        if route == "nvshmem":
            self._heap = HostHeap(rank, self.shared(size * HostHeap.RANK_BYTES))

    @property
    def calls(self) -> HostCalls | None:
        assert self._driver.current(), "a library starts on the current device"
        return self._calls

    @property
    def heap(self) -> HostHeap | None:
        assert self._driver.current(), "a library starts on the current device"
        return self._heap


def run(name: str, strategy: str, depth: int, devices: int, route: str) -> str:
    """One case; the reasons that it gave, if its bits are right."""
    problem, options, comm = PROBLEMS[name](), Options(strategy, depth), MPI.COMM_WORLD
    count = devices * comm.size
    plan = layout(problem, Partition.over(problem.grid, count), options)
    carrier = "mpi-direct" if route == "mpi-direct" else "mpi"
    ranks = Ranks(comm, tuple(n // devices for n in range(count)), 20.0, route == "address", carrier)
    ordinals = tuple(n if ranks.by_address or n in ranks.mine else 1000 + n for n in range(count))
    driver = SharedHostDriver(count, comm.rank + 7)
    processes = InGroups(ranks, driver, route)
    inner = CudaExecutor(plan, STEPS, ordinals, driver=driver, processes=processes)
    with closing(RankedExecutor(inner, ranks, divides=True)) as executor:
        schedule = one_iteration(plan, options)
        executor.prepare(schedule)
        require_right(plan, executor.carried_out(schedule))
        right = carry_through(executor, options) == expected(name)
        notes = sorted(inner.notes)
    assert not driver.live, driver.live
    assert processes._heap is None or not processes._heap.live, processes._heap.live
    assert not driver.opened
    assert not driver.registered
    return "; ".join(notes) if right else "wrong bits"


def own(kernel: str, route: str) -> list[str]:
    """Digests of what a kernel that is no stencil's leaves on GPUs of ranks, and on one virtual device."""
    comm, options = MPI.COMM_WORLD, Options("async")
    ranks = Ranks(comm, tuple(range(comm.size)), 20.0, route == "address", "mpi-direct" if "direct" in route else "mpi")
    ordinals = tuple(n if ranks.by_address or n in ranks.mine else 1000 + n for n in range(comm.size))
    driver, found = SharedHostDriver(comm.size, comm.rank + 7), list[str]()
    for place in (Place(Devices("cuda", ordinals), ranks, driver), Place(Devices("cpu", (0,)))):
        with MADE[kernel](place, options) as made:
            made.advance(5)
            values = [made.gather(made.layout.problem.state[0], slot) for slot in (0, 1)]
        found.append(hashlib.sha256(b"".join(part.tobytes() for part in values)).hexdigest())
    assert not driver.live, driver.live
    return found


def half_steps(place: Place, options: Options) -> OwnKernelRun:
    return Relaxation(random_graph(37 * 32, 5), 0.4, 11, place, options)


def sparse_products(place: Place, options: Options) -> OwnKernelRun:
    matrix = CsrMatrix.of(np.triu(np.random.default_rng(2).random((90, 90))) / 40)
    return Products(matrix, np.ones(90), place, options)


MADE = {"half steps": half_steps, "products": sparse_products}


def exchanged(by_address: bool, direct: bool) -> list[int]:
    """Exchanges by each way, each of which has to carry its own bytes: the sizes, and how many ways were taken."""
    comm, ways = MPI.COMM_WORLD, list[bool]()
    driver = SharedHostDriver(2, comm.rank + 7)

    def measured(ranks: Ranks, exchange: Callable[[], None]) -> float:
        out, into = ((ctypes.c_ubyte * 64).from_address(address) for address in list(driver._files)[:2])
        out[:] = [10 * len(ways) + comm.rank] * 64
        exchange()
        ways.append(set(into) == {10 * len(ways) + 1 - comm.rank})
        return 1.0

    found = gpu_exchanges(Ranks(comm, (0, 1), 20.0, by_address), driver, comm.rank, (64, 4096), direct, measured)
    assert not driver.live, driver.live
    assert all((one.by_address is not None) == by_address for one in found)
    assert all((one.direct is not None) == direct for one in found)
    return [*(one.bytes for one in found), len(ways) if all(ways) else -1]


if __name__ == "__main__":
    abort_on_error(MPI.COMM_WORLD)
    cases = json.loads(sys.argv[1])
    others = {"exchanges": exchanged, "own": own}
    found = list[object]()
    for case in cases:
        try:
            found.append(others[case[0]](*case[1:]) if case[0] in others else run(*case))
        except Exception as error:
            error.add_note(f"in the case {case}")
            raise
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found))
