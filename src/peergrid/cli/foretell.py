"""`peergrid plan` for a machine that is not here: from its figures alone, without a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from peergrid.costs.machine import Line, Machine
from peergrid.errors import DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.jobs.requested import RequestedOptions
from peergrid.models import BuiltModel
from peergrid.predict.choice import ranked, reason
from peergrid.predict.forecast import Forecast, Forecaster, fits
from peergrid.predict.profiles import machine_at
from peergrid.predict.scaling import MOST, WHOLE, Point, fewest, scaling, seconds_on
from peergrid.progress import megacells
from peergrid.runtime.fit import gibibytes
from peergrid.schedule import Options
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES
from peergrid.schedule.timeline import chrome

BEST = 5  # arrangements that are shown


@dataclass(frozen=True)
class Way:
    """An arrangement with what is foretold of it; times of a step in seconds.

    route: of all halos between GPUs (null: of each that which costs least); order: of the exchange; split: parts along
    each axis; boundary, interior, exchange: of the busiest device, whatever hides behind what.
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
class Foretold:
    """The object of `plan --machine`: like `Plan` of devices that are here, and beside it:

    measured: whether the machine's figures were; gpus_needed: the fewest that have the memory (null: more than are
    looked at); why: a sentence about the first of `best`; scaling: the same arrangement on more and more GPUs.
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
    best: tuple[Way, ...]
    scaling: tuple[Point, ...]
    notes: tuple[str, ...]


def machine_for(place: str, gpus: int | None, nodes: int, network: str | None) -> Machine:
    """The machine that is asked about. Raises UsageError where it makes no sense."""
    found = machine_at(place)
    if gpus is not None and gpus < 1:
        raise UsageError(f"'--gpus' takes a whole number above 0, got {gpus}.")
    if nodes < 1:
        raise UsageError(f"'--nodes' takes a whole number above 0, got {nodes}.")
    if nodes > 1 and network is None:
        raise UsageError(
            "'--nodes' needs '--network LATENCY,BANDWIDTH', such as 5e-6,50e9: seconds and bytes per second."
        )
    if nodes * (gpus or found.gpus) > MOST:
        raise UsageError(f"'plan' looks at no more than {MOST:,} GPUs, got {nodes * (gpus or found.gpus):,}.")
    return found.with_gpus(gpus or found.gpus, nodes, None if network is None else _network(network))


def foretell(
    name: str, built: BuiltModel, requested: RequestedOptions, machine: Machine
) -> tuple[Foretold, dict[str, Any]]:
    """The plan of a model on a machine, and the timeline of an iteration in Chrome's format.

    Raises DoesNotFit where no number of its GPUs has the memory."""
    problem, devices = built.problem, machine.gpus * machine.nodes
    split = None if requested.split is None else Partition(problem.grid, requested.split)
    if split is not None and split.devices != devices:
        raise UsageError(f"'--split' makes {split.devices} parts for {devices} GPUs; give as many parts as GPUs.")
    notes = tuple(_notes(machine))
    small = min(devices, WHOLE) if machine.nodes > 1 else devices
    host = replace(machine, gpus=min(small, machine.gpus), nodes=1, network=None)
    small = min(small, WHOLE)
    asked = Forecaster(problem, replace(host, gpus=small), small, split=split if small == devices else None)
    best = _best(asked, built, requested)
    first = best[0].options
    needed = fewest(problem, machine, first, built.steps)
    if needed is None:
        raise DoesNotFit(
            f"The run needs {gibibytes(sum(best[0].taken))}, for which {MOST:,} GPUs of machine '{machine.name}' with "
            f"{gibibytes(machine.memory)} each are too few; use a coarser grid."
        )
    counts = [1 << n for n in range(11)]
    points = scaling(problem, machine, first, counts)
    per_step, each = best[0].seconds_per_step, best[0].taken
    if small < devices:
        per_step, fullest = seconds_on(problem, machine, first, devices)
        each = (fullest,) * devices
        notes += (f"{devices} GPUs are simulated by a chain of alike slabs; '{first.strategy}' was chosen on {small}.",)
    cut = best[0].partition
    foretold = Foretold(
        model=name,
        shape=problem.grid.shape,
        cells=problem.grid.box.size,
        steps=built.steps,
        dtype=problem.grid.dtype,
        machine=machine.name,
        measured=machine.measured,
        devices=f"{devices} × {machine.gpu}",
        strategy=first.strategy,
        depth=first.depth,
        split=cut.parts if small == devices else (devices,) + (1,) * (problem.grid.ndim - 1),
        rows=_rows(cut) if small == devices else (problem.grid.shape[0] // devices,) * devices,
        fits=devices >= needed,
        gpus_needed=needed,
        memory_per_device=each,
        memory=sum(each),
        gcells_per_s=problem.grid.box.size / per_step / 1e9,
        seconds=per_step * built.steps,
        why=reason(best[0], best),
        best=tuple(_way(one, built.steps) for one in best[:BEST]),
        scaling=points,
        notes=notes,
    )
    return foretold, chrome(best[0].schedule.ops, best[0].spans)


def text(found: Foretold) -> str:
    """The same for people."""
    rows = {
        "model": found.model,
        "grid": f"{' × '.join(map(str, found.shape))} = {found.cells:,} cells, {found.dtype}",
        "steps": f"{found.steps:,}",
        "machine": f"{found.machine}, {found.devices}{'' if found.measured else ' (from data sheets, not measured)'}",
        "fits": f"{'yes' if found.fits else 'no'}, {found.gpus_needed} of these GPUs have the memory",
        "memory": f"{gibibytes(found.memory)}, at most {gibibytes(max(found.memory_per_device))} on one GPU",
        "time": f"{found.seconds:.3g} s at {megacells(found.gcells_per_s * 1e9)}, predicted",
        "choice": found.why,
    }
    lines = [f"{key:<10}{value}" for key, value in rows.items()]
    lines += ["", "strategy    depth   µs a step   exposed   boundary   interior   exchange"]
    lines += [
        f"{way.strategy:<12}{way.depth:>5}{way.seconds_per_step * 1e6:>12.2f}{way.exposed_communication:>10.1%}"
        f"{way.boundary * 1e6:>11.2f}{way.interior * 1e6:>11.2f}{way.exchange * 1e6:>11.2f}"
        f"{_beside(way, found.best)}"
        for way in found.best
    ]
    lines += ["", "GPUs    µs a step   efficiency   memory of one"]
    lines += [
        f"{point.gpus:>4}{point.seconds_per_step * 1e6:>13.2f}{point.efficiency:>13.1%}   {gibibytes(point.memory)}"
        f"{'' if point.fits else ', does not fit'}"
        for point in found.scaling
    ]
    return "\n".join(lines)


def _best(asked: Forecaster, built: BuiltModel, requested: RequestedOptions) -> tuple[Forecast, ...]:
    """The arrangements that are possible, the fastest first, those that fit before the others."""
    strategies = tuple(STRATEGIES) if requested.strategy is None else (requested.strategy,)
    depths = () if requested.depth is None else (min(requested.depth, built.steps),)
    usual = Options(order=requested.order or "all", route=requested.route)
    orders = (requested.order,) if requested.order else tuple(ORDERS)
    found = ranked(asked, strategies, built.steps, depths, usual, orders)
    if not found:
        raise UsageError("No kernel makes the steps that '--depth' asks for between exchanges; use fewer.")
    return tuple(sorted(found, key=lambda one: not fits(one, asked.machine)))


def _rows(partition: Partition) -> tuple[int, ...]:
    return tuple(partition.owned(device).shape[0] for device in range(partition.devices))


def _beside(way: Way, ways: Sequence[Way]) -> str:
    """The route, the order and the split of an arrangement, those in which some differ."""
    told = {"route": way.route or "by cost", "order": way.order, "split": "×".join(map(str, way.split))}
    differs = [name for name in told if len({getattr(other, name) for other in ways}) > 1]
    return "".join(f"   {name} {told[name]}" for name in differs)


def _way(one: Forecast, steps: int) -> Way:
    return Way(
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
        yield "A run has one host today: more than one is on paper."


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
