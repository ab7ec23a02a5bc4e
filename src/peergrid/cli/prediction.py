"""`peergrid plan --machine`: a plan for a machine that is not here, predicted from its figures, without a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from peergrid.costs.machine import Line, Machine
from peergrid.errors import DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.jobs.requested import RequestedOptions
from peergrid.models import BuiltModel
from peergrid.predict.choice import ranked, reason
from peergrid.predict.forecast import Forecast, Forecaster, fits
from peergrid.predict.profiles import machine_at
from peergrid.predict.scaling import (
    MOST,
    WHOLE,
    ChainForecast,
    Point,
    chains,
    fewest,
    hidden_from,
    is_chain,
    scaling,
)
from peergrid.progress import duration, megacells
from peergrid.runtime.fit import gibibytes
from peergrid.schedule import Options
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES
from peergrid.schedule.timeline import chrome
from peergrid.stencil import Problem

BEST = 5  # arrangements that are shown


@dataclass(frozen=True)
class PredictedOptions:
    """Options of a run and their predicted times, in seconds of a step.

    route: of all halos between GPUs (null: the cheapest one for each); order: of the exchange; split: parts along each
    axis; boundary, interior, exchange: of the busiest device, overlapped or not.
    """

    strategy: str
    depth: int
    route: str | None
    order: str
    split: tuple[int, ...]
    seconds_per_step: float
    seconds: float
    exposed_communication: float
    boundary: float
    interior: float
    exchange: float
    memory: int


@dataclass(frozen=True)
class Depth:
    """The prediction for one depth on many GPUs. slower: the time of a step relative to that with a network as fast as
    the links of a host.
    """

    depth: int
    seconds_per_step: float
    slower: float


@dataclass(frozen=True)
class Chain:
    """The forecast for more GPUs than one host has, or than are simulated one by one: a row of equal slabs.

    depths: the depths compared, the fastest first; rows: the fewest rows of a GPU that hide the network with the first
    depth, within a factor of two (null: this grid has too few, or there is no network).
    """

    depths: tuple[Depth, ...]
    rows: int | None


@dataclass(frozen=True)
class Prediction:
    """The object of `plan --machine`: the fields of `Plan`, and

    measured: the figures of the machine are measured; gpus_needed: the fewest that have the memory (null: more than the
    largest number considered); best: options for the GPUs of one host; why: the reason for the choice; chain: for many
    GPUs (null: `best` has them all); scaling: the same options on growing numbers of GPUs.
    """

    model: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    dtype: str
    machine: str
    measured: bool
    devices: str
    strategy: str
    depth: int
    split: tuple[int, ...]
    rows: tuple[int, ...]
    fits: bool
    gpus_needed: int | None
    memory_per_device: tuple[int, ...]
    memory: int
    gcells_per_s: float
    seconds: float
    why: str
    best: tuple[PredictedOptions, ...]
    chain: Chain | None
    scaling: tuple[Point, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PredictedTimeline:
    """An iteration on the GPUs of one host in Chrome's trace format, and notes about what it shows."""

    events: dict[str, Any]
    notes: tuple[str, ...]


def machine_for(place: str, gpus: int | None, nodes: int, network: str | None) -> Machine:
    """The machine of the options. Raises UsageError for options that are not valid."""
    found = machine_at(place)
    if gpus is not None and gpus < 1:
        raise UsageError(f"'--gpus' takes a whole number above 0, got {gpus}.")
    if nodes < 1:
        raise UsageError(f"'--nodes' takes a whole number above 0, got {nodes}.")
    if nodes > 1 and network is None:
        raise UsageError(
            "'--nodes' needs '--network LATENCY,BANDWIDTH', such as 5e-6,50e9: seconds and bytes per second."
        )
    if nodes == 1 and network is not None:
        raise UsageError("'--network' joins the hosts of '--nodes N', got one host, which has no network; name more.")
    if nodes * (gpus or found.gpus) > MOST:
        raise UsageError(f"'plan' predicts for at most {MOST:,} GPUs, got {nodes * (gpus or found.gpus):,}; use fewer.")
    return found.with_gpus(gpus or found.gpus, nodes, None if network is None else _network(network))


def predict(
    name: str, built: BuiltModel, requested: RequestedOptions, machine: Machine, *, timeline: bool
) -> tuple[Prediction, PredictedTimeline | None]:
    """The plan of a model on a machine, and the timeline of an iteration, if asked for.

    Raises DoesNotFit if no number of its GPUs has enough memory.
    """
    problem, devices = built.problem, machine.gpus * machine.nodes
    split = None if requested.split is None else Partition(problem.grid, requested.split)
    chain = is_chain(machine, devices)
    if split is not None:
        _check_split(split, devices, chain)
    few = min(machine.gpus, WHOLE) if chain else devices
    host = replace(machine, gpus=few, nodes=1, network=None)
    asked = Forecaster(problem, host, few, split=None if chain else split)
    best = _best(asked, built, requested)
    needed = fewest(problem, machine, best[0].options, built.steps)
    if needed is None:
        raise DoesNotFit(
            f"The run needs {gibibytes(sum(best[0].taken))}, for which {MOST:,} GPUs of machine '{machine.name}' with "
            f"{gibibytes(machine.memory)} each are too few; use a coarser grid."
        )
    found = chains(problem, machine, best[0].options, devices, _depths(requested, built)) if chain else ()
    chosen = _first_of_chain(found, problem, devices) if found else _first(best)
    prediction = _prediction(name, built, machine, chosen, needed, best, found)
    return prediction, _timeline(asked, best[0], chain) if timeline else None


def _timeline(asked: Forecaster, best: Forecast, chain: bool) -> PredictedTimeline:
    """The timeline of the first arrangement of one host; operations of fused kernels apart, as in a measured one."""
    strategy, notes = best.options.strategy, list[str]()
    if chain:
        notes.append(
            f"The timeline is of '{strategy}', depth {best.options.depth}, on {asked.devices} GPUs of one host."
        )
    if not best.fused:
        return PredictedTimeline(chrome(best.schedule.ops, best.spans), tuple(notes))
    notes.append(
        f"'{strategy}' fuses the halo exchange into its kernels, which have no operations of their own; the timeline "
        "has those of the unfused schedule, which takes longer."
    )
    schedule, spans = asked.spans(asked.arrangement(best.options).schedule)
    return PredictedTimeline(chrome(schedule.ops, spans), tuple(notes))


@dataclass(frozen=True)
class _Chosen:
    """The arrangement that a plan is for; memory: bytes of each GPU; why: the reason for the choice."""

    options: Options
    seconds_per_step: float
    memory: tuple[int, ...]
    split: tuple[int, ...]
    rows: tuple[int, ...]
    why: str
    notes: tuple[str, ...] = ()


def _first(best: tuple[Forecast, ...]) -> _Chosen:
    """The first of the arrangements of the GPUs of one host."""
    one = best[0]
    rows = _rows(one.partition)
    return _Chosen(one.options, one.seconds_per_step, one.taken, one.partition.parts, rows, reason(one, best))


def _first_of_chain(found: Sequence[ChainForecast], problem: Problem, devices: int) -> _Chosen:
    """The first of the arrangements of many GPUs, as a row of equal slabs."""
    return _Chosen(
        found[0].options,
        found[0].seconds_per_step,
        memory=(found[0].memory,) * devices,
        split=(devices, *(1,) * (problem.grid.ndim - 1)),
        rows=(problem.grid.shape[0] // devices,) * devices,
        why=_why(found),
        notes=(f"{devices:,} GPUs are predicted as a row of equal slabs.",),
    )


def _check_split(split: Partition, devices: int, chain: bool) -> None:
    """Raise UsageError for a split that is not of so many GPUs, or not one of a chain where it has to be."""
    if split.devices != devices:
        raise UsageError(f"'--split' makes {split.devices} parts for {devices} GPUs; give as many parts as GPUs.")
    if chain and split.parts[0] != devices:
        raise UsageError(
            f"'--split' takes slabs along the first axis where hosts or GPUs are many, such as {devices}x1, got "
            f"{'x'.join(map(str, split.parts))}; leave it out."
        )


def _prediction(
    name: str,
    built: BuiltModel,
    machine: Machine,
    chosen: _Chosen,
    needed: int,
    best: Sequence[Forecast],
    found: Sequence[ChainForecast],
) -> Prediction:
    """The plan; needed: the fewest GPUs with enough memory; best: on one host; found: for many GPUs, or none."""
    problem, devices, options = built.problem, machine.gpus * machine.nodes, chosen.options
    return Prediction(
        model=name,
        shape=problem.grid.shape,
        cells=problem.grid.box.size,
        steps=built.steps,
        dtype=problem.grid.dtype,
        machine=machine.name,
        measured=machine.measured,
        devices=f"{devices} × {machine.gpu}",
        strategy=options.strategy,
        depth=options.depth,
        split=chosen.split,
        rows=chosen.rows,
        fits=devices >= needed,
        gpus_needed=needed,
        memory_per_device=chosen.memory,
        memory=sum(chosen.memory),
        gcells_per_s=problem.grid.box.size / chosen.seconds_per_step / 1e9,
        seconds=chosen.seconds_per_step * built.steps,
        why=chosen.why,
        best=tuple(_predicted_options(one, built.steps) for one in best[:BEST]),
        chain=_compared(problem, machine, found) if found else None,
        scaling=scaling(problem, machine, options, [1 << n for n in range(11)]),
        notes=(*_notes(machine), *chosen.notes),
    )


def text(found: Prediction) -> str:
    """The plan as text."""
    rows = {
        "model": found.model,
        "grid": f"{' × '.join(map(str, found.shape))} = {found.cells:,} cells, {found.dtype}",
        "steps": f"{found.steps:,}",
        "machine": f"{found.machine}, {found.devices}{'' if found.measured else ' (from data sheets, not measured)'}",
        "fits": f"{'yes' if found.fits else 'no'}; the run needs at least {found.gpus_needed} of these GPUs",
        "memory": f"{gibibytes(found.memory)}, at most {gibibytes(max(found.memory_per_device))} on one GPU",
        "time": f"{duration(found.seconds)} at {megacells(found.gcells_per_s * 1e9)}, predicted",
        "choice": found.why,
    }
    lines = [f"{key:<10}{value}" for key, value in rows.items()]
    lines.append("")
    if found.chain is not None:
        lines.append(f"On {prod(found.best[0].split)} GPUs of one host:")
    lines += ["strategy    depth   µs a step   exposed   boundary   interior   exchange"]
    lines += [
        f"{way.strategy:<12}{way.depth:>5}{way.seconds_per_step * 1e6:>12.2f}{way.exposed_communication:>10.1%}"
        f"{way.boundary * 1e6:>11.2f}{way.interior * 1e6:>11.2f}{way.exchange * 1e6:>11.2f}"
        f"{_differing(way, found.best)}"
        for way in found.best
    ]
    if found.chain is not None:
        lines += ["", *_chain_lines(found.chain)]
    lines += ["", f"By '{found.strategy}', depth {found.depth}, on any number of GPUs, relative to the same on one:"]
    lines += ["GPUs    µs a step   efficiency   memory of one"]
    lines += [
        f"{point.gpus:>4}{point.seconds_per_step * 1e6:>13.2f}{point.efficiency:>13.1%}   {gibibytes(point.memory)}"
        f"{'' if point.fits else ', does not fit'}"
        for point in found.scaling
    ]
    return "\n".join(lines)


def _best(asked: Forecaster, built: BuiltModel, requested: RequestedOptions) -> tuple[Forecast, ...]:
    """The possible options, those that fit into memory first, the fastest of them first."""
    strategies = tuple(STRATEGIES) if requested.strategy is None else (requested.strategy,)
    depths = _depths(requested, built)
    usual = Options(order=requested.order or "all", route=requested.route)
    orders = (requested.order,) if requested.order else tuple(ORDERS)
    found = ranked(asked, strategies, built.steps, depths, usual, orders)
    if not found:
        raise UsageError(f"No kernel makes {requested.depth} steps between two exchanges; use a smaller '--depth'.")
    return tuple(sorted(found, key=lambda one: not fits(one, asked.machine)))


def _depths(requested: RequestedOptions, built: BuiltModel) -> tuple[int, ...]:
    """The requested steps between exchanges; none if they are free."""
    return () if requested.depth is None else (min(requested.depth, built.steps),)


def _compared(problem: Problem, machine: Machine, found: Sequence[ChainForecast]) -> Chain:
    rows = None if machine.network is None else hidden_from(problem, machine, found[0].options)
    depths = (Depth(one.options.depth, one.seconds_per_step, one.slower) for one in found)
    return Chain(tuple(depths), rows)


def _why(found: Sequence[ChainForecast]) -> str:
    """A sentence about the first of some arrangements of a chain."""
    first = found[0]
    others = ", ".join(str(one.options.depth) for one in sorted(found[1:], key=lambda one: one.options.depth))
    ahead = f", the fastest of these and {others}" if others else ""
    sentence = f"'{first.options.strategy}' with {first.options.depth} steps between exchanges{ahead}"
    if first.slower == 1:
        return f"{sentence}."
    network = "is hidden" if first.hidden else f"makes a step {first.slower:.3g} times as long"
    return f"{sentence}; the network {network}."


def _chain_lines(chain: Chain) -> Iterator[str]:
    """The table of a chain for people."""
    yield "depth   µs a step   over that on links of a host"
    for one in sorted(chain.depths, key=lambda one: one.depth):
        yield f"{one.depth:>5}{one.seconds_per_step * 1e6:>12.2f}{one.slower:>10.3f}"
    if chain.rows is not None:
        yield f"With depth {chain.depths[0].depth} the network is hidden where GPUs have {chain.rows:,} rows or more."
    elif chain.depths[0].slower > 1:
        yield f"With depth {chain.depths[0].depth} the network is not hidden on this grid, on any number of GPUs."


def _rows(partition: Partition) -> tuple[int, ...]:
    return tuple(partition.owned(device).shape[0] for device in range(partition.devices))


def _differing(way: PredictedOptions, ways: Sequence[PredictedOptions]) -> str:
    """The route, the order and the split, as far as they differ among the options shown."""
    choices = {"route": way.route or "by cost", "order": way.order, "split": "×".join(map(str, way.split))}
    differs = [name for name in choices if len({getattr(other, name) for other in ways}) > 1]
    return "".join(f"   {name} {choices[name]}" for name in differs)


def _predicted_options(one: Forecast, steps: int) -> PredictedOptions:
    return PredictedOptions(
        one.options.strategy,
        one.options.depth,
        one.options.route,
        one.options.order,
        one.partition.parts,
        one.seconds_per_step,
        one.seconds_per_step * steps,
        one.exposed,
        one.boundary,
        one.interior,
        one.exchange,
        max(one.taken),
    )


def _notes(machine: Machine) -> Iterator[str]:
    if not machine.measured:
        yield f"Machine '{machine.name}' was not measured: its figures are from its {machine.source}."
    if machine.nodes > 1:
        yield (
            "The figures of the network are those given; no run on several hosts was measured (see "
            "'peergrid docs clusters')."
        )


def _network(text: str) -> Line:
    """Seconds of latency and bytes per second."""
    parts = text.split(",")
    try:
        latency, bandwidth = map(float, parts)
        sensible = 0 <= latency < 1 and 0 < bandwidth < 1e15
    except ValueError:
        sensible = False
    if not sensible:
        raise UsageError(
            f"'--network' takes LATENCY,BANDWIDTH in seconds and bytes per second, such as 5e-6,50e9, got '{text}'."
        )
    return Line(latency, bandwidth)
