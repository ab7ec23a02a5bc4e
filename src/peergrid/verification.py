"""The proof of the schedules that a run executes, after all lowering passes, by both checkers.

No device is used: GPUs are described by a model, and all of them access each other's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.arguments import brief
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.errors import UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.devices import MOST_VIRTUAL
from peergrid.runtime.trace.judge import Checkers, replayed_by_window
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration
from peergrid.schedule.exchange import Order
from peergrid.schedule.faults import Fault
from peergrid.schedule.mend import distinct
from peergrid.schedule.passes import Chain, apply_passes
from peergrid.schedule.passes.hosts import hosts_of_gpus
from peergrid.schedule.proved import repeated
from peergrid.schedule.strategies import StrategyName
from peergrid.schedule.windows import MANY, kinds, objections_by_window
from peergrid.stencil import Problem, Step, problem_of


@dataclass(frozen=True)
class Target:
    """The devices for which schedules are lowered: GPUs, or virtual devices, which need no lowering.

    ordinals: the GPU of each device (empty: virtual devices); gpu: the model of all of them.
    """

    devices: int
    ordinals: tuple[int, ...] = ()
    gpu: GpuModel = H200

    def layout(self, problem: Problem, options: Options, *, even: bool = True) -> Layout:
        """The memory of the devices; even: with slabs of equal size on virtual devices, as GPUs never have them."""
        if even and not self.ordinals:
            return layout(problem, Partition.over(problem.grid, self.devices), options)
        from peergrid.codegen.cuda.choose.balance import balanced
        from peergrid.codegen.cuda.choose.steps import split_at

        cut = balanced(problem, self.devices, options.depth, None, options.block)
        return layout(problem, cut, options, split_at(problem, cut, None, self.gpu) if self.ordinals else ())

    def options(self, problem: Problem, strategy: StrategyName, depth: int, order: Order = "all") -> Options:
        """The options of a run: on GPUs with as many steps per pass as kernels make."""
        if not self.ordinals:
            return Options(strategy, depth, order=order)
        from peergrid.codegen.cuda.choose.steps import block_of

        block = block_of(problem, depth, self.gpu)
        return Options(strategy, depth, block=block, order=order)

    def passes(self, plan: Layout, schedule: Schedule) -> Chain:
        """The lowering passes for the devices."""
        if not self.ordinals:
            return ()
        from peergrid.runtime.cuda.lowering.kernels import Kernels
        from peergrid.runtime.cuda.lowering.passes import fused_passes, queued_passes

        multiprocessors = (self.gpu.multiprocessors,) * self.devices
        kernels = Kernels(plan, None, self.gpu, multiprocessors, lambda one, other: True)
        hosts = hosts_of_gpus(self.ordinals, self.devices)
        return fused_passes(kernels.exchanging(schedule)[0], hosts) or queued_passes(
            schedule, self.ordinals, self._crosses, kernels, hosts=hosts
        )

    def lowered(self, plan: Layout, schedule: Schedule) -> Schedule:
        """The schedule that the devices execute."""
        return apply_passes(plan, schedule, self.passes(plan, schedule))

    def _crosses(self, source: int, target: int) -> bool:
        return self.ordinals[source] != self.ordinals[target]


def target_of(spec: str) -> Target:
    """The target of 'cpu:4', 'cuda:0,1', 'cuda:0,0' or a count; the devices need not exist."""
    kind, _, rest = str(spec).rpartition(":")
    numbers = rest.split(",")
    if kind == "cuda" and all(number.isdigit() for number in numbers):
        return Target(len(numbers), tuple(map(int, numbers)))
    if kind in ("", "cpu") and rest.isdigit() and 1 <= int(rest) <= MOST_VIRTUAL:
        return Target(int(rest))
    raise UsageError(
        f"The devices of a proof are 'cpu:N' with N from 1 to {MOST_VIRTUAL}, or 'cuda:0,1', got {brief(spec)}."
    )


def opinions(plan: Layout, iterations: tuple[Schedule, ...]) -> tuple[Iterator[Fault], Iterator[Fault]]:
    """The faults found by the static proof and by the replay; for many devices by windows of neighbours."""
    if plan.devices >= MANY:
        windows = tuple(kinds(plan, iterations))
        return objections_by_window(plan, iterations, windows), replayed_by_window(plan, iterations, windows)
    both = Checkers(plan, iterations)
    return both.proved(iterations), both.replayed(iterations)


@dataclass(frozen=True)
class Proof:
    """The outcome of a proof.

    ops: the operations of one iteration after all lowering passes; passes: the names of these; faults: a line for each
    distinct fault, with the order that would mend it; agreed: both checkers came to the same verdict.
    """

    strategy: StrategyName
    ops: int
    passes: tuple[str, ...]
    faults: tuple[str, ...]
    agreed: bool

    @property
    def holds(self) -> bool:
        """True if both checkers find no fault."""
        return not self.faults and self.agreed


def verify(
    problem: Step,
    *,
    devices: str = "cpu:2",
    strategy: StrategyName = "overlap",
    depth: int = 1,
    order: Order = "all",
) -> Proof:
    """Prove that the schedule which a run repeats has no race, stale read or deadlock, as its devices execute it.

    problem: a `Problem`, or updates and stages in order; devices: 'cpu:4', or GPUs such as 'cuda:0,1', which need not
    exist. Raises UsageError for options that are not valid.
    """
    problem, target = problem_of(problem), target_of(devices)
    options = target.options(problem, strategy, depth, order)
    plan = target.layout(problem, options)
    schedule = one_iteration(plan, options)
    chain = target.passes(plan, schedule)
    iterations = repeated(plan, apply_passes(plan, schedule, chain))
    static, traced = map(distinct, opinions(plan, iterations))
    names = tuple(one.name for one in chain)
    return Proof(strategy, len(iterations[-1].ops), names, static or traced, bool(static) == bool(traced))
