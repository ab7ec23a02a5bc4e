"""The time of half steps on several GPUs, predicted from the rate of one GPU by a simulation of their schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.costs.machine import Machine
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.predict.kernels import Duration
from peergrid.predict.operations import Given, Timed
from peergrid.predict.simulation import simulate
from peergrid.schedule import Options, layout, one_iteration
from peergrid.schedule.passes.hosts import AssignHosts
from peergrid.spins.graph import WORD
from peergrid.spins.problem import half_steps


def half_step_seconds(per_colour: int, gpus: int, rate: float, machine: Machine) -> float:
    """Seconds of a half step with the exchange `copy` on so many GPUs of a machine.

    Args:
        per_colour: variables of a colour, a multiple of 32.
        gpus: their number.
        rate: variables that one GPU draws per second.
        machine: the machine for links and host calls (`peergrid.predict`).

    Raises UsageError for numbers that are not valid.
    """
    if per_colour < WORD * gpus or per_colour % WORD or gpus < 1 or not rate > 0:
        raise UsageError(
            f"At least {WORD} variables for each GPU, a multiple of {WORD}, and a rate above 0 are expected, got "
            f"{per_colour} variables on {gpus} GPUs at a rate of {rate}."
        )
    problem, options = half_steps(np.zeros(per_colour // WORD, np.uint32)), Options("async")
    plan = layout(problem, Partition.over(problem.grid, gpus), options)

    def passes(device: int, steps: int, boxes: tuple[Box, ...]) -> Sequence[Timed]:
        seconds = sum(box.size for box in boxes) * WORD / rate
        return [Timed(Duration(seconds, 0.0))]

    schedule = AssignHosts(tuple(range(gpus)))(plan, one_iteration(plan, options))
    given = Given(machine, problem.itemsize, passes, lambda op: "copy", several=gpus > 1)
    return simulate(schedule, given).seconds / schedule.steps
