"""Predictions for many GPUs: a row of slabs that are equal but for the ends, so that five of them represent all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from peergrid.schedule.layout import ROWS_PER_STEP
from peergrid.schedule.ops import Compute
from peergrid.stencil import Problem

WHOLE = 8  # most devices that are simulated one by one
WINDOW = 5  # devices that represent more
MOST = MOST_GPUS
DEPTHS = (1, 2, 4, 8)  # depths that are compared for a row of slabs
HIDDEN = 1.02  # relative to links of a host: a network with a smaller factor is hidden


@dataclass(frozen=True)
class Point:
    """The prediction for a number of GPUs: seconds of a step, parallel efficiency, and bytes of the GPU that stores
    most.
    """

    gpus: int
    nodes: int
    seconds_per_step: float
    efficiency: float
    memory: int
    fits: bool


@dataclass(frozen=True)
class ChainForecast:
    """The forecast for a long row of slabs: seconds of a step, bytes of the GPU that stores most.

    slower: the time of a step relative to that with a network as fast as the links of a host (1 without a network).
    """

    options: Options
    seconds_per_step: float
    memory: int
    slower: float

    @property
    def hidden(self) -> bool:
        """True if the network hardly adds to the time of a step."""
        return self.slower <= HIDDEN


def is_chain(machine: Machine, devices: int) -> bool:
    """True if so many GPUs are simulated as a row of equal slabs."""
    return devices > min(WHOLE, machine.gpus)


def chains(
    problem: Problem, machine: Machine, options: Options, devices: int, depths: Sequence[int] = ()
) -> tuple[ChainForecast, ...]:
    """The forecasts for a row of GPUs at several depths, the fastest first.

    depths: those requested; by default all for which slabs have enough rows. Raises UsageError if they have too few, or
    no kernel serves any depth.
    """
    rows = problem.grid.shape[0] // devices
    tried = depths or [d for d in sorted({*DEPTHS, options.depth}) if ROWS_PER_STEP * d <= rows] or [1]
    found = list[ChainForecast]()
    for depth in tried:
        _check_rows(problem, devices, depth)
        with suppress(UsageError):
            found.append(_chain(problem, machine, replace(options, depth=depth, block=None), rows))
    if not found:
        raise UsageError(f"No kernel makes {tried[0]} steps between two exchanges; use a smaller '--depth'.")
    return tuple(sorted(found, key=lambda one: one.seconds_per_step))


def hidden_from(problem: Problem, machine: Machine, options: Options) -> int | None:
    """The fewest rows of a GPU that hide the network, within a factor of two; None if this grid has too few."""
    fewest, rows = None, problem.grid.shape[0] // WINDOW
    while rows >= ROWS_PER_STEP * options.depth and _chain(problem, machine, options, rows).hidden:
        fewest, rows = rows, rows // 2
    return fewest


def scaling(problem: Problem, machine: Machine, options: Options, counts: Sequence[int]) -> tuple[Point, ...]:
    """The same options on growing numbers of GPUs, as long as each has enough rows for its halos."""
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
    """Seconds of a step on so many GPUs, and bytes of the one that stores most. Raises UsageError if slabs are too
    thin.
    """
    if is_chain(machine, devices):
        _check_rows(problem, devices, options.depth)
        return _windowed(problem, machine, options, problem.grid.shape[0] // devices)
    forecast = Forecaster(problem, machine, devices).forecast(options)
    return forecast.seconds_per_step, max(forecast.taken)


def _check_rows(problem: Problem, devices: int, depth: int) -> None:
    rows = problem.grid.shape[0]
    if rows // devices < ROWS_PER_STEP * depth:
        raise UsageError(
            f"Slabs are expected to have {ROWS_PER_STEP} rows for each step between exchanges, {ROWS_PER_STEP * depth} "
            f"in all; {devices:,} GPUs get {rows // devices} of the grid's {rows:,} each: use at most "
            f"{max(1, rows // (ROWS_PER_STEP * depth)):,} GPUs."
        )


def _chain(problem: Problem, machine: Machine, options: Options, rows: int) -> ChainForecast:
    """The forecast of a row of slabs of so many rows, relative to that with a network as fast as the links of a
    host.
    """
    options = _on_hosts(options)
    seconds, memory = _windowed(problem, machine, options, rows)
    near = seconds
    if machine.network is not None:
        near, _ = _windowed(problem, replace(machine, network=machine.copy), options, rows)
    return ChainForecast(options, seconds, memory, seconds / near)


def _on_hosts(options: Options) -> Options:
    """The options for a row of slabs on several hosts: kernels with fused exchange work within one host only."""
    return replace(options, strategy="overlap") if options.strategy in ("peer", "persistent", "graph") else options


def _windowed(problem: Problem, machine: Machine, options: Options, rows: int) -> tuple[float, int]:
    """The same from five devices in the middle of the grid, of which the outer ones work as the middle one does.

    With several hosts, one link among them is the network.
    """
    first = (problem.grid.shape[0] - (WINDOW - 2) * rows) // 2
    cuts = (0, first, first + rows, first + 2 * rows, first + 3 * rows, problem.grid.shape[0])
    partition = Partition.slabs(problem.grid, cuts)
    apart = machine.network is not None
    window = replace(machine, gpus=WINDOW - 2 if apart else WINDOW)
    forecaster = Forecaster(problem, window, WINDOW, split=partition, typical=tuple(range(1, WINDOW - 1)))
    found = forecaster.arrangement(_on_hosts(options))
    given = _with_equal_ends(found, forecaster.inputs(found))
    memory = Plan(found.plan, 1, forecaster.gpu).taken(WINDOW // 2)
    return simulate(found.lowered, given).seconds / found.schedule.steps, memory


def _with_equal_ends(found: Arrangement, given: Given) -> Given:
    """The same input, with outer devices that work as the one in the middle."""
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
    """The fewest GPUs with enough memory for a run; None if `MOST` have too little."""
    forecaster = Forecaster(problem, machine, 1)
    plan = Plan(forecaster.plan(options), steps, forecaster.gpu)
    return fields.fewest(plan, machine.memory - machine.reserved)
