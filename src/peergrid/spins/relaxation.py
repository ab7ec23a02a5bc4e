"""A relaxation: half steps by the schedules and the executors that serve stencils."""

from __future__ import annotations

import hashlib

import numpy as np

from peergrid.arguments import check_kind
from peergrid.grid.partition import Partition
from peergrid.runtime.devices import Devices
from peergrid.runtime.own_kernel import IN_STREAMS, OwnKernelRun, OwnKernels, Place, place_of
from peergrid.runtime.ranks.ranks import Communicator
from peergrid.schedule import Options
from peergrid.spins.compiled import HalfStepKernel
from peergrid.spins.gpu_kernel import GpuHalfStep
from peergrid.spins.graph import BipartiteGraph
from peergrid.spins.philox import Words, check_seed
from peergrid.spins.problem import FIELD, half_steps
from peergrid.spins.rule import energy, first_words, thresholds


class Relaxation(OwnKernelRun):
    """The variables of a graph at a temperature, advanced in half steps: blue from red, then red from blue.

    Args:
        graph: the neighbours of each variable.
        coupling: K = J / kT; infinite at zero temperature.
        seed: of the first values and of all draws, 64 bits; the same seed gives the same bits on any devices.
        devices: such as `cpu:4`, `cuda` or `cuda:0,1`.
        options: as in `Simulation`; they change no bits.
        comm: processes that make the same calls with devices of their own, such as `mpi4py.MPI.COMM_WORLD`.

    Raises UsageError for arguments that are not valid.
    """

    def __init__(
        self,
        graph: BipartiteGraph,
        coupling: float,
        seed: int = 0,
        devices: str | Devices | Place = "cpu",
        options: Options = IN_STREAMS,
        comm: Communicator | None = None,
    ) -> None:
        check_kind("graph", graph, BipartiteGraph, "a graph, such as that of random_graph")
        check_seed(seed)
        self.graph = graph
        place, first, limits = place_of(devices, comm, options), first_words(graph.words, seed), thresholds(coupling)
        problem = half_steps(first)
        kernels = OwnKernels(HalfStepKernel(graph, limits, seed), GpuHalfStep(graph, limits, seed, problem))
        super().__init__(problem, kernels, Partition.over(problem.grid, place.devices.count), options, place)
        for slot in (0, 1):
            self.load(FIELD, first.view(np.float32), slot)

    def words(self) -> tuple[Words, Words]:
        """The words of red and of blue; variable i is bit i % 32 of word i // 32."""
        red, blue = (self.gather(FIELD, slot).view(np.uint32) for slot in (0, 1))
        return red, blue

    def energy(self) -> float:
        """The energy of a variable, in units of the coupling."""
        return energy(self.graph.red, *self.words())

    def sha256(self) -> str:
        """A digest of all variables, red before blue."""
        return hashlib.sha256(b"".join(words.tobytes() for words in self.words())).hexdigest()
