"""From a layout and a strategy's name to a schedule: the frozen list of operations of some steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import cast, get_args

from peergrid.arguments import brief, check_flag, is_one_of, is_whole
from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.schedule.exchange import ORDERS, Order
from peergrid.schedule.layout import Layout, blocks_of
from peergrid.schedule.ops import Carrier, Compute, Op, Route
from peergrid.schedule.pass_plan import Due, PassPlan, due, passes_of
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem

ROUTES: tuple[str, ...] = (*get_args(Route), *get_args(Carrier))
MOST_DEPTH = 10_000  # steps between two exchanges; a schedule has operations for each
MOST_REPEATED = 256  # steps after which reductions repeat, for one schedule of all of them


@dataclass(frozen=True)
class Options:
    """The options of a run; none of them changes the result.

    strategy: serial, async, threads, overlap, graph, peer or persistent; depth: steps between two halo exchanges, hence
    the depth of the ghost cells in steps; block: steps per pass, at most `depth` (None: as many as `depth`); order: of
    the halos in an exchange (left-right, pairwise or all at once); separate: wait between the stages of that order;
    route: of halos between GPUs (copy, store or host; None: chosen for the strategy), or between processes (mpi,
    mpi-direct, nccl or nvshmem; None: by GPU addresses if possible, else mpi).
    Raises UsageError for names and numbers that are not valid.
    """

    strategy: StrategyName = "overlap"
    depth: int = 1
    block: int | None = None
    order: Order = "all"
    separate: bool = False
    route: Route | Carrier | None = None

    def __post_init__(self) -> None:
        if not is_one_of(self.strategy, STRATEGIES):
            raise UsageError(f"A strategy is one of {', '.join(STRATEGIES)}, got {brief(self.strategy)}.")
        if not is_one_of(self.order, ORDERS):
            raise UsageError(f"An exchange order is one of {', '.join(ORDERS)}, got {brief(self.order)}.")
        if self.route is not None and not is_one_of(self.route, ROUTES):
            raise UsageError(f"A route is one of {', '.join(ROUTES)}, got {brief(self.route)}.")
        if not is_whole(self.depth) or self.depth < 1:
            raise UsageError(f"The depth is a positive number of steps, got {brief(self.depth)}.")
        if self.depth > MOST_DEPTH:
            raise UsageError(f"The depth is at most {MOST_DEPTH:,} steps, got {self.depth:,}.")
        if self.block is not None and not (is_whole(self.block) and 1 <= self.block <= self.depth):
            raise UsageError(f"A pass takes 1 to {self.depth} steps (the depth), got block = {brief(self.block)}.")
        check_flag("separate", self.separate)

    @property
    def within(self) -> Route | None:
        """The route of halos within a process; None: left open."""
        return None if self.route in get_args(Carrier) else cast(Route | None, self.route)

    @property
    def steps_per_pass(self) -> int:
        return self.depth if self.block is None else self.block


@dataclass(frozen=True)
class ResolvedOptions:
    """Options after defaults, prediction and trial; notes: sentences on the choice; split: the boxes chosen with them
    (None: the default ones).
    """

    options: Options
    notes: tuple[str, ...] = ()
    split: Partition | None = None


@dataclass(frozen=True)
class Schedule:
    """The operations that advance every device by `steps` steps, from slot `first` to slot `final`.

    Hosts issue the operations that name them in this order. Ghost cells are valid before and after, so that schedules
    can follow one another; levels and flag values count from the start of each. due: the reductions that it makes, in
    order of their levels.
    """

    options: Options
    devices: int
    steps: int
    first: int
    final: int
    ops: tuple[Op, ...]
    due: tuple[Due, ...] = ()

    @property
    def passes(self) -> tuple[Compute, ...]:
        """One computation of each pass, in order."""
        found = {op.level: op for op in self.ops if isinstance(op, Compute)}
        return tuple(found[level] for level in sorted(found))


def layout(problem: Problem, partition: Partition, options: Options, align: Index = ()) -> Layout:
    """The memory of every device under the options; align: see `Layout`."""
    return Layout(problem, partition, blocks_of(options.depth, options.steps_per_pass), align)


def build(plan: Layout, options: Options, steps: int, first: int = 0, start: int | None = 0) -> Schedule:
    """The schedule of `steps` steps that starts from slot `first`.

    start: the step of the run at which it begins, for the reductions that are due (None: none is).
    """
    strategy = STRATEGIES[options.strategy]
    reductions = due(plan.problem, start, steps)
    work = PassPlan(
        layout=plan,
        passes=tuple(passes_of(plan, options.steps_per_pass, steps, first, reductions)),
        stages=ORDERS[options.order](plan.exchanged),
        wraps=tuple(sorted(plan.wrapped, key=lambda halo: halo.source)),
        separate=options.separate,
        route=options.within or strategy.route,
    )
    final = work.passes[-1].target if work.passes else first
    return Schedule(options, plan.devices, steps, first, final, tuple(strategy.build(work)), reductions)


def repeated(problem: Problem) -> int | None:
    """The period, in steps, of the problem's reductions; None if it is too long for one schedule."""
    every = lcm(*(one.every for one in problem.reductions))
    return every if every <= MOST_REPEATED else None


def one_iteration(plan: Layout, options: Options, first: int = 0, start: int | None = 0) -> Schedule:
    """The shortest schedule that can be repeated: it ends in the slot it starts from, and at a step from which
    reductions repeat, as `start` has to be one (None: no reduction is due).

    Without reductions it is two exchange intervals, or one with an even number of passes.
    """
    every = 1 if start is None else lcm(*(one.every for one in plan.problem.reductions))
    whole = every * -(-plan.depth // every)
    once = build(plan, options, whole, first, start)
    return once if once.final == first else build(plan, options, 2 * whole, first, start)
