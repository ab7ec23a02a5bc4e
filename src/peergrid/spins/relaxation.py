"""A relaxation on virtual devices: half steps by the schedules and the executor that serve stencils."""

from __future__ import annotations

import hashlib
from types import TracebackType
from typing import Self

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.runtime.executor import Executor
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.messages import MpiMail
from peergrid.runtime.ranks.ranks import Communicator, Ranks, devices_of_all
from peergrid.schedule import Layout, Options, Schedule, build, layout
from peergrid.schedule.proved import require_right
from peergrid.spins.compiled import HalfStepKernel
from peergrid.spins.graph import BipartiteGraph
from peergrid.spins.philox import Words
from peergrid.spins.problem import FIELD, half_steps
from peergrid.spins.rule import energy, first_words, thresholds

ALTERNATING = Options("async")


class Relaxation:
    """The variables of a graph at a temperature, advanced in half steps: blue from red, then red from blue.

    Args:
        graph: who is joined with whom.
        coupling: K = J / kT; infinite at zero temperature.
        seed: of the first values and of all draws, 64 bits; the same seed gives the same bits on any devices.
        devices: virtual devices such as `cpu:4`.
        options: how half steps are arranged; nothing of it changes a bit.
        comm: processes that make the same calls with devices of their own, such as `mpi4py.MPI.COMM_WORLD`.

    Raises UsageError where an argument cannot mean anything.
    """

    def __init__(
        self,
        graph: BipartiteGraph,
        coupling: float,
        seed: int = 0,
        devices: str | Devices = "cpu",
        options: Options = ALTERNATING,
        comm: Communicator | None = None,
    ) -> None:
        self.graph, self.step = graph, 0
        chosen = devices if isinstance(devices, Devices) else parse_devices(devices)
        if chosen.kind == "cuda":
            raise UsageError(f"Virtual devices such as 'cpu:4' are expected, got {chosen}; see `gpu_relaxation`.")
        ranks = None
        if comm is not None and comm.size > 1:
            chosen, ranks = devices_of_all(comm, chosen)
        first = first_words(graph.words, seed)
        problem = half_steps(first)
        self._options = options
        self.layout: Layout = layout(problem, Partition.over(problem.grid, chosen.count), options)
        kernel = HalfStepKernel(graph, thresholds(coupling), seed)
        self._executor = _executor(self.layout, kernel, ranks)
        for slot in (0, 1):
            self._executor.load(FIELD, first.view(np.float32), slot)

    def schedule(self, half_steps: int) -> Schedule:
        """The operations of so many half steps from here."""
        return build(self.layout, self._options, half_steps, self.step % 2)

    def advance(self, half_steps: int) -> None:
        """Make half steps, an even number of them together, by schedules that are proved before."""
        for count, times in ((2, half_steps // 2), (1, half_steps % 2)):
            if times:
                schedule = self.schedule(count)
                self._executor.prepare(schedule)
                require_right(self.layout, self._executor.carried_out(schedule))
                self._executor.execute(schedule, times, self.step)
                self.step += count * times

    def words(self) -> tuple[Words, Words]:
        """The words of red and of blue; variable i is bit i % 32 of word i // 32."""
        red, blue = (self._executor.gather(FIELD, slot).view(np.uint32) for slot in (0, 1))
        return red, blue

    def energy(self) -> float:
        """The energy of a variable, in units of the coupling."""
        return energy(self.graph.red, *self.words())

    def sha256(self) -> str:
        """A digest of all variables, red before blue."""
        return hashlib.sha256(b"".join(words.tobytes() for words in self.words())).hexdigest()

    def close(self) -> None:
        """Release the devices."""
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _executor(plan: Layout, kernel: HalfStepKernel, ranks: Ranks | None) -> Executor:
    """The executor of virtual devices, of one process or of several."""
    if ranks is None:
        return ThreadedExecutor(plan, 0, kernel)
    mail = MpiMail(ranks, plan.problem.grid.dtype)
    return RankedExecutor(ThreadedExecutor(plan, 0, kernel, devices=ranks.mine, mail=mail), ranks)
