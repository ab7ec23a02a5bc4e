"""Resolve the options of a run for its devices: strategy, depth, steps per pass, and the partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from peergrid.arguments import brief, is_one_of
from peergrid.codegen.cache import default_cache
from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.runtime.collection import collection_paused
from peergrid.runtime.devices import Devices
from peergrid.schedule import Layout, Options, ResolvedOptions, layout
from peergrid.schedule.exchange import ORDERS, Order
from peergrid.schedule.layout import ROWS_PER_STEP
from peergrid.schedule.ops import Carrier, Route
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem, footprint
from peergrid.stencil.rotating import rotating_fields

if TYPE_CHECKING:
    from peergrid.predict.forecast import Forecast

CPU_DEPTH = 8  # default depth on virtual devices: enough to work from the cache


def default_options(devices: Devices, problem: Problem, norm: str | None = None) -> Options:
    """The default strategy and depth: on GPUs the most steps that are faster in one pass."""
    most = min(max(1, problem.grid.shape[0] // devices.count // ROWS_PER_STEP), _gap(problem))
    if devices.kind == "cpu":
        return Options("async", depth=1 if norm else min(_cpu_depth(problem), most))
    from peergrid.codegen.cuda.choose.steps import steps_per_pass
    from peergrid.runtime.cuda.memory.room import gpu_model

    usual = Options("overlap", depth=steps_per_pass(problem, most, norm, gpu_model(devices.ordinals)))
    return usual if usual.depth == 1 or _has_room(usual, devices, problem) else replace(usual, depth=1)


def _cpu_depth(problem: Problem) -> int:
    """Steps between exchanges of virtual devices: in 3D fewer for stencils with a large extent, whose halos are planes.

    If fields rotate in memory, single steps move so little data that only large depths would be faster.
    """
    if problem.grid.ndim < 3:
        return CPU_DEPTH
    extents = footprint(problem, 1).inputs.values()
    reach = max(1, *(max(*extent.below, *extent.above) for extent in extents))
    return 1 if reach > 1 and rotating_fields(problem) else max(1, CPU_DEPTH // reach)


def _has_room(options: Options, devices: Devices, problem: Problem) -> bool:
    """True if GPUs have memory for the cells that 3D passes of several steps store in between."""
    if problem.grid.ndim < 3:
        return True
    from peergrid.runtime.cuda.memory.fields import Plan, has_room
    from peergrid.runtime.cuda.memory.room import gpu_model

    made = layout(problem, partition_of(problem, devices, options), options)
    plan = Plan(made, 1, gpu_model(devices.ordinals))
    return has_room(plan, devices.ordinals)


@collection_paused()
def resolve_options(
    devices: Devices,
    problem: Problem,
    steps: int,
    *,
    strategy: StrategyName | None = None,
    depth: int | None = None,
    order: Order | None = None,
    route: Route | Carrier | None = None,
    split: Index | Partition | None = None,
    cache: Path | None = None,
    norm: str | None = None,
    say: Callable[[str], None] | None = None,
) -> ResolvedOptions:
    """The options of a run of `steps` steps: those given, and the others by default, prediction or trial.

    On GPUs a long run begins with a trial of the predicted fastest options, whose result is kept in `cache`; say:
    called with a sentence before it. Shorter runs use the prediction. Without a prediction, and on GPUs of other
    processes, nothing is tried.
    """
    usual = default_options(devices, problem, norm)
    usual = replace(usual, order=order or usual.order, route=route)
    resolved = replace(usual, strategy=strategy or usual.strategy, depth=depth or usual.depth)
    if devices.kind == "cpu" or (strategy and depth) or not devices.here:
        return ResolvedOptions(resolved)
    from peergrid.trials.trial import WORTH_SECONDS, Trial

    cut = partition_of(problem, devices, usual, split, norm)
    orders = (order,) if order else tuple(ORDERS)
    promising = _promising(problem, devices, usual, (strategy, depth), steps, cut if split else None, norm, orders)
    if not promising:
        return ResolvedOptions(resolved)
    from peergrid.predict.choice import candidates

    other = None if promising[0].partition.parts == cut.parts else promising[0].partition
    ways, folder = candidates(promising, usual, orders), (cache or default_cache()) / "cubin"
    if steps * promising[0].seconds_per_step < WORTH_SECONDS:
        return ResolvedOptions(ways[0], split=other)
    trial = Trial(problem, other or cut, devices.ordinals, steps, ways, norm, folder, say=say)
    return replace(trial.fastest(resolved), split=other)


def _promising(
    problem: Problem,
    devices: Devices,
    usual: Options,
    named: tuple[StrategyName | None, int | None],
    steps: int,
    split: Partition | None,
    norm: str | None,
    orders: Sequence[Order],
) -> tuple[Forecast, ...]:
    """The options that fit into memory, the predicted fastest first; none without a prediction."""
    from peergrid.predict.choice import ranked
    from peergrid.predict.forecast import fits
    from peergrid.predict.here import forecaster_here

    forecaster = forecaster_here(problem, devices, norm, split)
    if forecaster is None:
        return ()
    strategy, depth = named
    strategies = (strategy,) if strategy else tuple(STRATEGIES)
    found = ranked(forecaster, strategies, min(steps, _gap(problem)), (depth,) if depth else (), usual, orders)
    return tuple(one for one in found if fits(one, forecaster.machine))


def with_supported_block(options: Options, devices: Devices, problem: Problem, norm: str | None = None) -> Options:
    """The options with a number of steps per pass that the devices support, unless one is given.

    With a norm, virtual devices make one step per pass, as they do not store the values between the steps of a pass.
    """
    if options.block is not None:
        return options
    if devices.kind == "cpu":
        return replace(options, block=1) if norm and options.depth > 1 else options
    from peergrid.codegen.cuda.choose.steps import block_of
    from peergrid.runtime.cuda.memory.room import gpu_model

    block = block_of(problem, options.depth, gpu_model(devices.ordinals), norm)
    return options if block == options.depth else replace(options, block=block)


def partition_of(
    problem: Problem,
    devices: Devices,
    options: Options,
    split: Index | Partition | None = None,
    norm: str | None = None,
) -> Partition:
    """The given split or, by default, slabs along axis 0: on GPUs those that take equally long.

    Raises UsageError if the split has another number of parts than there are devices.
    """
    if split is None:
        if devices.kind == "cpu":
            return Partition.over(problem.grid, devices.count)
        from peergrid.codegen.cuda.choose.balance import balanced

        return balanced(problem, devices.count, options.depth, norm, options.block)
    partition = split if isinstance(split, Partition) else Partition(problem.grid, _parts(split))
    if partition.devices != devices.count:
        raise UsageError(
            f"The split {'×'.join(map(str, partition.parts))} makes {partition.devices} parts for {devices.count} "
            "devices; give as many parts as devices."
        )
    return partition


def layout_of(
    problem: Problem, devices: Devices, options: Options, partition: Partition, norm: str | None = None
) -> Layout:
    """The memory of every device; interiors are aligned to the tiles of kernels, or to the bands of a norm's sums."""
    if devices.kind == "cpu":
        from peergrid.codegen.norm import NORM_ROWS

        return layout(problem, partition, options, (NORM_ROWS, 1) if norm else ())
    from peergrid.codegen.cuda.choose.steps import split_at
    from peergrid.runtime.cuda.memory.room import gpu_model

    align = split_at(problem, partition, norm, gpu_model(devices.ordinals))
    return layout(problem, partition, options, align)


def norm_in_passes(problem: Problem, norm: str) -> bool:
    """True if kernels compute the norm within each pass: for fields on all cells of 2D grids.

    Any other norm is a reduction like those of the user. Raises UsageError for a field that does not change.
    """
    if not is_one_of(norm, problem.state):
        raise UsageError(
            f"The norm of every step's change is that of one of the fields that change ({', '.join(problem.state)}), "
            f"got {brief(norm)}."
        )
    return problem.grid.ndim == 2 and problem.fields[norm].box.covers(problem.grid.box)


def _gap(problem: Problem) -> int:
    """The most steps of an exchange interval, which ends where a reduction is due."""
    if not problem.reductions:
        return max(CPU_DEPTH, *problem.grid.shape)
    apart = gcd(*(one.every for one in problem.reductions))
    return max(1, apart - any(one.previous for one in problem.reductions))


def _parts(split: Index | int) -> Index:
    return tuple(split) if isinstance(split, Sequence) else (split,)
