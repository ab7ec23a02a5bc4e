"""Predict the rates of cases on a machine that need not be here, from its figures."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.bench.measure import Case
from peergrid.codegen.cuda.choose.steps import steps_per_pass
from peergrid.costs.machine import Machine
from peergrid.predict.forecast import Forecaster
from peergrid.schedule import Options
from peergrid.schedule.layout import ROWS_PER_STEP


@dataclass(frozen=True)
class PredictedCase:
    """The rate of a case as predicted.

    series, base, count, shape, options, gcells_per_s, efficiency: as in `Measured`; seconds_per_step: predicted;
    host_seconds_per_step: of the busiest thread of the host, which issues work.
    """

    series: str
    base: str
    count: int
    shape: tuple[int, ...]
    options: Options
    seconds_per_step: float
    gcells_per_s: float
    host_seconds_per_step: float
    efficiency: float | None = None


def predicted(case: Case, machine: Machine) -> PredictedCase:
    """Predict a case on its number of GPUs of a machine. Raises UsageError if no kernel makes its passes."""
    problem = case.make()
    asked = Forecaster(problem, machine.with_gpus(case.count), case.count, case.norm)
    most = max(1, problem.grid.shape[0] // case.count // ROWS_PER_STEP)
    depth = case.depth or steps_per_pass(problem, most, case.norm, asked.gpu)
    found = asked.forecast(Options(case.strategy, depth=depth, block=case.block))
    return PredictedCase(
        series=case.series,
        base=case.base,
        count=case.count,
        shape=problem.grid.shape,
        options=found.options,
        seconds_per_step=found.seconds_per_step,
        gcells_per_s=problem.grid.box.size / found.seconds_per_step / 1e9,
        host_seconds_per_step=found.host_seconds_per_step,
    )
