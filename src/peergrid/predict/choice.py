"""The choice of an arrangement by prediction: every strategy at the depths worth a look, the fastest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from peergrid.codegen.cuda.choose.steps import lengths
from peergrid.errors import UsageError
from peergrid.predict.forecast import Forecast, Forecaster
from peergrid.schedule import Options
from peergrid.schedule.strategies import STRATEGIES, StrategyName

DEPTHS = 2  # numbers of steps per pass that are looked at, beside one
BLOCKING: tuple[StrategyName, ...] = ("serial", "async", "threads")  # worth a look at the best depth of others alone
ROWS_PER_STEP = 4  # rows of a device for each step of depth, so that most of its work is not redundant


def ranked(
    forecaster: Forecaster,
    strategies: Sequence[StrategyName] = tuple(STRATEGIES),
    most: int | None = None,
    depths: Sequence[int] = (),
    usual: Options | None = None,
) -> tuple[Forecast, ...]:
    """The arrangements of a problem on a machine, the fastest first; none where no kernel makes any.

    most: steps of the run; depths: those that are asked for; usual: what is asked for beside.
    """
    tried = depths or depths_of(forecaster, most)
    given, found = usual or Options(), list[Forecast]()
    quick = [strategy for strategy in strategies if strategy not in BLOCKING]
    for strategy, depth in product(quick or strategies, tried):
        found += _forecast(forecaster, replace(given, strategy=strategy, depth=depth, block=None))
    if quick and found:
        best = min(found, key=lambda one: one.seconds_per_step).options.depth
        for strategy in strategies:
            if strategy in BLOCKING:
                found += _forecast(forecaster, replace(given, strategy=strategy, depth=best, block=None))
    return tuple(sorted(_distinct(found), key=lambda one: one.seconds_per_step))


def _forecast(forecaster: Forecaster, options: Options) -> Iterator[Forecast]:
    """The forecast of an arrangement; none of a depth that no kernel makes."""
    with suppress(UsageError):
        yield forecaster.forecast(options)


def depths_of(forecaster: Forecaster, most: int | None = None) -> tuple[int, ...]:
    """The numbers of steps between exchanges that are worth a look."""
    problem = forecaster.problem
    rows = problem.grid.shape[0] // forecaster.devices
    limit = max(1, min(rows // ROWS_PER_STEP, most or rows))
    return tuple(dict.fromkeys((*lengths(problem, limit, forecaster.norm, forecaster.gpu)[:DEPTHS], 1)))


def reason(best: Forecast, others: Sequence[Forecast]) -> str:
    """A sentence that says why one arrangement is ahead of the others."""
    name = f"'{best.options.strategy}' with {best.options.depth} steps between exchanges"
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
