"""More GPUs than anybody has: a chain of slabs of which all but the ends are alike, so that five tell of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from peergrid.costs.machine import Machine
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.predict.forecast import Arrangement, Forecaster
from peergrid.predict.operations import Given, Timed
from peergrid.predict.simulation import in_order, simulate
from peergrid.runtime.cuda.memory import fields
from peergrid.runtime.cuda.memory.fields import MOST_GPUS, Plan
from peergrid.schedule import Options
from peergrid.schedule.ops import Compute
from peergrid.stencil import Problem

WHOLE = 8  # devices up to which a machine is simulated as it is
WINDOW = 5  # devices that stand for more
MOST = MOST_GPUS


@dataclass(frozen=True)
class Point:
    """A number of GPUs: seconds of a step, the rate over that of as many single ones, bytes of the fullest."""

    gpus: int
    nodes: int
    seconds_per_step: float
    efficiency: float
    memory: int
    fits: bool


def scaling(problem: Problem, machine: Machine, options: Options, counts: Sequence[int]) -> tuple[Point, ...]:
    """One arrangement on more and more GPUs, as long as each has rows enough for its halos."""
    found = list[Point]()
    single = 0.0
    for count in counts:
        nodes = -(-count // machine.gpus)
        here = machine if nodes > 1 else replace(machine, network=None)
        try:
            seconds, memory = seconds_on(problem, here, options, count)
        except UsageError:
            break
        single = single or seconds * count
        fits = memory + machine.reserved <= machine.memory
        found.append(Point(count, nodes, seconds, single / count / seconds, memory, fits))
    return tuple(found)


def seconds_on(problem: Problem, machine: Machine, options: Options, devices: int) -> tuple[float, int]:
    """Seconds of a step on so many GPUs, and bytes of the fullest. Raises UsageError where slabs are too thin."""
    if devices <= min(WHOLE, machine.gpus):
        forecast = Forecaster(problem, machine, devices).forecast(options)
        return forecast.seconds_per_step, max(forecast.taken)
    rows = problem.grid.shape[0] // devices
    if rows < 4 * options.depth:
        raise UsageError(f"Slabs of {rows} rows are too thin for halos of {options.depth} steps; use fewer GPUs.")
    return _windowed(problem, machine, options, rows)


def _windowed(problem: Problem, machine: Machine, options: Options, rows: int) -> tuple[float, int]:
    """The same from five devices in the middle of the grid, of which the outer two do what the middle one does.

    Where there are several hosts, one link of the window is the network.
    """
    first = (problem.grid.shape[0] - (WINDOW - 2) * rows) // 2
    cuts = (0, first, first + rows, first + 2 * rows, first + 3 * rows, problem.grid.shape[0])
    partition = Partition.slabs(problem.grid, cuts)
    apart = machine.network is not None
    window = replace(machine, gpus=WINDOW - 2 if apart else WINDOW)
    asked = Forecaster(problem, window, WINDOW, split=partition, typical=tuple(range(1, WINDOW - 1)))
    # kernels that exchange by themselves do so within a host
    plain = replace(options, strategy="overlap") if options.strategy in ("peer", "persistent", "graph") else options
    found = asked.arrangement(plain)
    given = _alike(found, asked.given(found))
    memory = Plan(found.plan, 1, asked.gpu).taken(WINDOW // 2)
    return simulate(found.lowered, given).seconds / found.schedule.steps, memory


def _alike(found: Arrangement, given: Given) -> Given:
    """The same knowledge, with the outer devices doing what the one in the middle does."""
    middle: dict[object, tuple[Box, ...]] = {}
    outer: dict[tuple[int, tuple[Box, ...]], tuple[Box, ...]] = {}
    items = [ops for _, ops in in_order(found.lowered, given) if isinstance(ops[0], Compute)]
    for ops in items:
        op = ops[0]
        if isinstance(op, Compute) and op.device == WINDOW // 2:
            middle[op.queue.name, op.level] = tuple(part.box for part in ops if isinstance(part, Compute))
    for ops in items:
        op = ops[0]
        if isinstance(op, Compute) and op.device in (0, WINDOW - 1):
            boxes = tuple(part.box for part in ops if isinstance(part, Compute))
            outer[op.device, boxes] = middle.get((op.queue.name, op.level), boxes)

    def passes(device: int, steps: int, boxes: tuple[Box, ...]) -> Sequence[Timed]:
        if (device, boxes) in outer:
            return given.passes(WINDOW // 2, steps, outer[device, boxes])
        return given.passes(device, steps, boxes)

    return replace(given, passes=passes)


def fewest(problem: Problem, machine: Machine, options: Options, steps: int) -> int | None:
    """The fewest GPUs that have memory for a run; None where `MOST` have too little."""
    asked = Forecaster(problem, machine, 1)
    plan = Plan(asked.plan(options), steps, asked.gpu)
    return fields.fewest(plan, machine.memory - machine.reserved)
