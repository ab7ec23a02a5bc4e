"""The choice of an arrangement by prediction: every strategy at the depths worth a look, the fastest first.

Of the fastest few, routes of halos and orders of the exchange are looked at, too; and other splits than slabs where
halos do not hide.
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

DEPTHS = 2  # numbers of steps per pass that are looked at, beside one
PASSES = 4  # steps between exchanges that are looked at where more than one in a pass is not worth it
BLOCKING: tuple[StrategyName, ...] = ("serial", "async", "threads")  # worth a look at the best depth of others alone
SHARED: tuple[StrategyName, ...] = ("peer", "threads")  # by several devices: one does what it does under others
CANDIDATES = 4  # foretold to be the fastest, of which a trial takes the fastest
VARIED = 2  # of the fastest arrangements, whose routes and orders are looked at: of later ones they decide nothing
WORTH = 0.97  # of the time for which another route or order than the usual is taken: what a choice may lose
SPLIT = 0.8  # the same for other boxes than slabs, whose forecasts no measurement was held against
HOPELESS = 1.5  # times the best so far: a depth that cannot do better is not looked at
CACHED = 4  # times the bytes of a cache: of more than that it holds too little to count
EXPOSED = 0.1  # share of a step without computation, from which on other boxes are worth a look


def ranked(
    forecaster: Forecaster,
    strategies: Sequence[StrategyName] = tuple(STRATEGIES),
    most: int | None = None,
    depths: Sequence[int] = (),
    usual: Options | None = None,
    orders: Sequence[Order] = tuple(ORDERS),
) -> tuple[Forecast, ...]:
    """The arrangements of a problem on a machine, the fastest first; none where no kernel makes any.

    Each strategy and depth is there once, with the route and the order that suit it. most: steps of the run; depths,
    orders: those that are asked for; usual: what is asked for beside, a route among it.
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
    """The arrangements for a trial: those that are foretold to be the fastest, `graph`, and the fastest that copies
    halos in every order and by the usual route; all on the split of the first.
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
    """Every strategy at every depth, those that block at the best depth of the others alone."""
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
    """The arrangement with the route and then the order that are foretold to save enough, where an exchange shows."""
    if one.fused or forecaster.devices == 1 or one.exposed < 1 - WORTH:
        return one
    best = one
    routes = get_args(Route) if one.options.route is None else ()
    for route in (name for name in routes if name != "host"):  # slower than both, wherever GPUs reach each other
        best = min(best, *_forecast(forecaster, replace(one.options, route=route)), key=_seconds)
    best = best if _seconds(best) < WORTH * _seconds(one) else one
    ordered = [best, *(f for order in orders[1:] for f in _forecast(forecaster, replace(best.options, order=order)))]
    other = min(ordered, key=_seconds)
    return other if _seconds(other) < WORTH * _seconds(best) else best


def _other_splits(forecaster: Forecaster, found: Sequence[Forecast]) -> Iterator[Partition]:
    """Other boxes than slabs, with fewer cells at their sides; none where slabs are asked for or their halos hide."""
    problem = forecaster.problem
    free = forecaster.split is None and forecaster.typical is None and forecaster.norm is None
    if free and not problem.reductions and found and found[0].exposed > EXPOSED:
        yield from splits(problem.grid, forecaster.devices, found[0].partition.parts)[:1]


def _least(forecaster: Forecaster, depth: int) -> float:
    """Seconds of a step that none of so many steps between exchanges can beat: single ones move all fields; nothing is
    known of several, nor of fields that a cache may hold.
    """
    machine, moved = forecaster.machine, minimal_bytes(forecaster.problem) / forecaster.devices
    return moved / machine.bandwidth if depth == 1 and moved > CACHED * machine.cache else 0.0


def _seconds(one: Forecast) -> float:
    return one.seconds_per_step


def _by_time(found: Sequence[Forecast]) -> tuple[Forecast, ...]:
    return tuple(sorted(found, key=_seconds))


def _forecast(forecaster: Forecaster, options: Options) -> Iterator[Forecast]:
    """The forecast of an arrangement; none of a depth that no kernel makes."""
    with suppress(UsageError):
        yield forecaster.forecast(options)


def depths_of(forecaster: Forecaster, most: int | None = None) -> tuple[int, ...]:
    """The numbers of steps between exchanges that are worth a look: where calls and exchanges take the most time, as
    on small grids, more than one are, whatever a pass is worth.
    """
    problem = forecaster.problem
    rows = problem.grid.shape[0] // forecaster.devices
    limit = max(1, min(rows // ROWS_PER_STEP, most or rows))
    several = lengths(problem, limit, forecaster.norm, forecaster.gpu)[:DEPTHS]
    return tuple(dict.fromkeys((*(several if several[0] > 1 else (min(PASSES, limit),)), 1)))


def reason(best: Forecast, others: Sequence[Forecast]) -> str:
    """A sentence that says why one arrangement is ahead of the others."""
    name = f"'{best.options.strategy}' with {best.options.depth} steps between exchanges"
    if best.options.route:
        name += f", halos by '{best.options.route}'"
    if best.options.order != Options().order:
        name += f", in the order '{best.options.order}'"
    if best.host_seconds_per_step > 0.95 * best.seconds_per_step:
        told = "the host's calls decide its time, and it needs the fewest"
    elif best.fused:
        told = "its kernels exchange by themselves, so that nothing is launched or waited for in between"
    elif best.exchange and best.exchange + best.boundary <= best.interior:
        told = "its boundary region and exchange hide behind the interior"
    else:
        told = "its kernels have the least to do"
    behind = [one for one in others if one is not best]
    if not behind:
        return f"{name}: {told}."
    second = behind[0]
    ahead = second.seconds_per_step / best.seconds_per_step - 1
    return f"{name}: {told}; '{second.options.strategy}', depth {second.options.depth}, takes {ahead:.1%} longer."


def _distinct(found: Sequence[Forecast]) -> Iterator[Forecast]:
    """One device has nothing to exchange: what is the same there is named once, by the plainest strategy."""
    seen = set[object]()
    for one in found:
        key = one.options.depth, round(one.seconds_per_step * 1e9), one.fused
        if key not in seen or len({op.device for op in one.schedule.ops if hasattr(op, "device")}) > 1:
            yield one
        seen.add(key)
