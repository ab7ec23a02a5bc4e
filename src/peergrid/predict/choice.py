"""The choice of options by prediction: every strategy at promising depths, the fastest first.

For the fastest few, routes of halos and orders of the exchange are varied, too; and splits other than slabs, if halos
are not hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import get_args

from peergrid.codegen.cuda.choose.steps import lengths
from peergrid.errors import UsageError
from peergrid.grid.partition import Partition, splits
from peergrid.predict.forecast import Forecast, Forecaster
from peergrid.schedule import Options
from peergrid.schedule.exchange import ORDERS, Order
from peergrid.schedule.layout import ROWS_PER_STEP
from peergrid.schedule.ops import Route
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil.cost import minimal_bytes

DEPTHS = 2  # numbers of steps per pass to consider, besides one
PASSES = 4  # steps between exchanges to consider if one step per pass is best
BLOCKING: tuple[StrategyName, ...] = ("serial", "async", "threads")  # considered only at the best depth of the others
SHARED: tuple[StrategyName, ...] = ("peer", "threads")  # for several devices; for one they equal others
CANDIDATES = 4  # predicted fastest options, of which a trial takes the fastest
VARIED = 2  # of the fastest options, whose routes and orders are varied; for slower ones they decide nothing
WORTH = 0.97  # relative time below which another route or order is chosen: the tolerated error of a choice
SPLIT = 0.8  # the same for splits other than slabs, whose forecasts were not compared with measurements
HOPELESS = 1.5  # relative to the best so far: a depth with a larger lower bound is skipped
CACHED = 4  # relative to the bytes of a cache: of larger arrays it holds a negligible part
EXPOSED = 0.1  # exposed communication from which on other splits are considered


def ranked(
    forecaster: Forecaster,
    strategies: Sequence[StrategyName] = tuple(STRATEGIES),
    most: int | None = None,
    depths: Sequence[int] = (),
    usual: Options | None = None,
    orders: Sequence[Order] = tuple(ORDERS),
) -> tuple[Forecast, ...]:
    """The options of a problem on a machine, the fastest first; empty if no kernel serves any.

    Each strategy and depth occurs once, with its best route and order. most: steps of the run; depths, orders: those
    requested; usual: the other options, among them the requested route.
    """
    given = replace(usual or Options(), order=orders[0])
    tried = depths or depths_of(forecaster, most)
    found = _by_time(_plain(forecaster, strategies, tried, given))
    found = _by_time(tuple(_varied(forecaster, one, orders) for one in found[:VARIED]) + found[VARIED:])
    for cut in _other_splits(forecaster, found):
        asked = replace(forecaster, split=cut)
        first = found[0].options
        for one in _forecast(asked, replace(first, block=None)):
            if one.seconds_per_step < SPLIT * found[0].seconds_per_step:
                there = _by_time(_plain(asked, strategies, tried, given))
                found = _by_time(tuple(_varied(asked, each, orders) for each in there[:VARIED]) + there[VARIED:])
    return found


def candidates(
    found: Sequence[Forecast], usual: Options, orders: Sequence[Order] = tuple(ORDERS)
) -> tuple[Options, ...]:
    """The candidates of a trial: the predicted fastest ones, `graph`, and the fastest one that copies halos in every
    order and by the usual route; all with the split of the first.
    """
    here = [one for one in found if one.partition.parts == found[0].partition.parts]
    ways = [one.options for one in here[:CANDIDATES]]
    ways += [one.options for one in here if one.options.strategy == "graph"][:1]
    for one in [one for one in here if not one.fused and one.partition.devices > 1][:1]:
        ways += [replace(one.options, order=order) for order in orders]
        ways += [replace(one.options, route=usual.route)]
    return tuple(dict.fromkeys(replace(way, block=usual.block) for way in ways))


def _plain(
    forecaster: Forecaster, strategies: Sequence[StrategyName], tried: Sequence[int], given: Options
) -> tuple[Forecast, ...]:
    """Every strategy at every depth; blocking ones only at the best depth of the others."""
    found = list[Forecast]()
    if forecaster.devices == 1:
        strategies = [strategy for strategy in strategies if strategy not in SHARED] or strategies
    quick = [strategy for strategy in strategies if strategy not in BLOCKING]
    for depth in tried:
        if found and _least(forecaster, depth) > HOPELESS * min(map(_seconds, found)):
            continue
        for strategy in quick or strategies:
            found += _forecast(forecaster, replace(given, strategy=strategy, depth=depth, block=None))
    if quick and found:
        best = min(found, key=lambda one: one.seconds_per_step).options.depth
        for strategy in strategies:
            if strategy in BLOCKING:
                found += _forecast(forecaster, replace(given, strategy=strategy, depth=best, block=None))
    return tuple(_distinct(found))


def _varied(forecaster: Forecaster, one: Forecast, orders: Sequence[Order]) -> Forecast:
    """The options with another route and then another order, if these are predicted to save enough of an exposed
    exchange.
    """
    if one.fused or forecaster.devices == 1 or one.exposed < 1 - WORTH:
        return one
    best = one
    routes = get_args(Route) if one.options.route is None else ()
    for route in (name for name in routes if name != "host"):  # slower than both if GPUs access each other's memory
        best = min(best, *_forecast(forecaster, replace(one.options, route=route)), key=_seconds)
    best = best if _seconds(best) < WORTH * _seconds(one) else one
    ordered = [best, *(f for order in orders[1:] for f in _forecast(forecaster, replace(best.options, order=order)))]
    other = min(ordered, key=_seconds)
    return other if _seconds(other) < WORTH * _seconds(best) else best


def _other_splits(forecaster: Forecaster, found: Sequence[Forecast]) -> Iterator[Partition]:
    """Splits other than slabs, with smaller halos; none if slabs are requested or their halos are hidden."""
    problem = forecaster.problem
    free = forecaster.split is None and forecaster.typical is None and forecaster.norm is None
    if free and not problem.reductions and found and found[0].exposed > EXPOSED:
        yield from splits(problem.grid, forecaster.devices, found[0].partition.parts)[:1]


def _least(forecaster: Forecaster, depth: int) -> float:
    """A lower bound for the seconds of a step at a depth: single steps move all fields through memory; 0 for more
    steps, and for fields that fit into a cache.
    """
    machine, moved = forecaster.machine, minimal_bytes(forecaster.problem) / forecaster.devices
    return moved / machine.bandwidth if depth == 1 and moved > CACHED * machine.cache else 0.0


def _seconds(one: Forecast) -> float:
    return one.seconds_per_step


def _by_time(found: Sequence[Forecast]) -> tuple[Forecast, ...]:
    return tuple(sorted(found, key=_seconds))


def _forecast(forecaster: Forecaster, options: Options) -> Iterator[Forecast]:
    """The forecast for some options; None for a depth that no kernel serves."""
    with suppress(UsageError):
        yield forecaster.forecast(options)


def depths_of(forecaster: Forecaster, most: int | None = None) -> tuple[int, ...]:
    """The promising depths. Where host calls and exchanges dominate, as on small grids, more than one is promising for
    any number of steps per pass.
    """
    problem = forecaster.problem
    rows = problem.grid.shape[0] // forecaster.devices
    limit = max(1, min(rows // ROWS_PER_STEP, most or rows))
    several = lengths(problem, limit, forecaster.norm, forecaster.gpu)[:DEPTHS]
    return tuple(dict.fromkeys((*(several if several[0] > 1 else (min(PASSES, limit),)), 1)))


def reason(best: Forecast, others: Sequence[Forecast]) -> str:
    """A sentence with the reason why some options are the fastest."""
    name = f"'{best.options.strategy}' with {best.options.depth} steps between exchanges"
    if best.options.route:
        name += f", halos by '{best.options.route}'"
    if best.options.order != Options().order:
        name += f", in the order '{best.options.order}'"
    if best.host_seconds_per_step > 0.95 * best.seconds_per_step:
        why = "the run is launch-bound, and this strategy needs the fewest host calls"
    elif best.fused:
        why = "its kernels exchange halos themselves, without launches or waits in between"
    elif best.exchange and best.exchange + best.boundary <= best.interior:
        why = "its exchange overlaps the computation of the interior"
    else:
        why = "its kernels take the least time"
    behind = [one for one in others if one is not best]
    if not behind:
        return f"{name}: {why}."
    second = behind[0]
    ahead = second.seconds_per_step / best.seconds_per_step - 1
    return f"{name}: {why}; '{second.options.strategy}', depth {second.options.depth}, takes {ahead:.1%} longer."


def _distinct(found: Sequence[Forecast]) -> Iterator[Forecast]:
    """One device has nothing to exchange: forecasts that are equal there are listed once, under the simplest
    strategy.
    """
    seen = set[object]()
    for one in found:
        key = one.options.depth, round(one.seconds_per_step * 1e9), one.fused
        if key not in seen or len({op.device for op in one.schedule.ops if hasattr(op, "device")}) > 1:
            yield one
        seen.add(key)
