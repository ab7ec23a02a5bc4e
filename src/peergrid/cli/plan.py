"""`peergrid plan`: the memory, the time and the options of a run, from a short trial."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import AsJson, CommandLineOptions, ModelFile, Precision, Traces, arranging, opened
from peergrid.cli.notes import announce, print_notes, warn
from peergrid.cli.replace import guard
from peergrid.costs.machine import Machine
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import RequestedOptions
from peergrid.models import BuiltModel, Model, PicturedBuilt, read
from peergrid.models.survey import shifts, surveyed
from peergrid.placement import Placement
from peergrid.progress import duration, megacells
from peergrid.runtime.fit import gibibytes
from peergrid.schedule import Options, one_iteration
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.timeline import START, VIEWERS
from peergrid.simulate import Simulation
from peergrid.stencil import Problem

USUAL_MACHINE = "h200-x8"  # the default machine
FORMATS = (".png", ".pdf", ".svg")
TRIALS = 3
SHOWN = 3  # strategies
TRIAL_SECONDS = 0.02  # the shortest trial, if the model has enough steps


@dataclass(frozen=True)
class Plan:
    """The needs of a run; times in seconds, memory in bytes. `seconds` is an estimate from a short trial.

    host_memory: an upper bound for the whole run, results and pictures included; snapshots: bytes of their file,
    without compression; traces: of the survey (1 without one), each of which has these needs; rows: cells of each
    device along the first axis; predicted: seconds of a step under each strategy, the fastest first, for virtual
    devices alone; notes: options that were chosen by trial or differ from the requested ones, with reasons.
    """

    model: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    traces: int
    dtype: str
    devices: str
    strategy: str
    depth: int
    split: tuple[int, ...]
    rows: tuple[int, ...]
    memory_per_device: tuple[int, ...]
    memory: int
    host_memory: int
    snapshots: int
    gcells_per_s: float
    seconds: float
    predicted: dict[StrategyName, float]
    notes: tuple[str, ...]


@arranging
def plan(
    model: ModelFile,
    arguments: CommandLineOptions,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="FILE|NAME", help="Predict for this machine: a profile, or h200-x8."),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", metavar="N", help="GPUs of the machine, or of each node.")
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", help="Nodes, joined by --network.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network", metavar="LATENCY,BANDWIDTH", help="Of the links of nodes: seconds, bytes per second."
        ),
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option("--timeline", metavar="FILE", help="Write the predicted timeline here, for Perfetto.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Only draw the geometry, as .png, .pdf or .svg."),
    ] = None,
    traces: Traces = None,
    dtype: Precision = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the memory, the time and the best strategy of a run; nothing runs but a short trial."""
    described = opened(read(model), traces, dtype)
    if picture is not None:
        _draw(described.build(), picture)
        return
    if any(given is not None for given in (machine, gpus, nodes, network, timeline)):
        from peergrid.cli.prediction import machine_for  # imports compilers, which is slow

        if arguments.devices != "auto":
            raise UsageError(
                f"A plan for another machine uses no devices of this one; leave out '--devices {arguments.devices}', "
                "or '--machine', '--gpus', '--nodes', '--network' and '--timeline'."
            )
        asked = machine_for(USUAL_MACHINE if machine is None else machine, gpus, 1 if nodes is None else nodes, network)
        elsewhere = replace(arguments, devices="cpu:1").requested(described, elsewhere=True)
        _predict(str(model), described, elsewhere, asked, timeline, as_json=as_json)
        return
    found = _tried(str(model), described, arguments, quiet=as_json)
    print_notes(found.notes)
    typer.echo(json.dumps(asdict(found), indent=2) if as_json else _text(found))


def _predict(
    name: str, described: Model, requested: RequestedOptions, machine: Machine, timeline: Path | None, *, as_json: bool
) -> None:
    """Print the plan for a machine that is not here, and write its timeline."""
    from peergrid.cli.prediction import predict, text  # imports compilers, which is slow

    if timeline is not None:
        Folder(timeline.parent).prepare("--timeline FILE")
        guard(timeline, "timeline", START)
    built = described.build()
    _warn(built)
    prediction, shown = predict(name, built, requested, machine, timeline=timeline is not None)
    if timeline is not None and shown is not None:
        with replacing(timeline) as partial:
            partial.write_text(json.dumps(shown.events))
        prediction = replace(prediction, notes=(*prediction.notes, *shown.notes))
    print_notes(prediction.notes)
    typer.echo(json.dumps(asdict(prediction), indent=2) if as_json else text(prediction))
    if timeline is not None and not as_json:
        typer.echo(f"\n{timeline}: {VIEWERS}")


def _tried(name: str, described: Model, arguments: CommandLineOptions, *, quiet: bool) -> Plan:
    """The plan from a short trial on the devices here."""
    many = surveyed(described)
    traces = 1 if many is None else len(shifts(many))
    if many is not None:
        print_notes((f"The model has a survey of {traces} traces; the figures are for one trace on all devices.",))
    requested = arguments.requested(described)
    built = described.build()
    if requested.leads:
        _warn(built)
    chosen = requested.resolve(built, None if quiet else announce)
    enough = (TRIALS + 2) * 2 * chosen.options.depth
    with requested.simulation(built, chosen, max(built.steps, enough)) as simulation:
        found = replace(_plan(name, built, simulation, _seconds_per_step(simulation)), traces=traces)
    if requested.devices.kind == "cpu" and requested.comm is None:
        found = replace(found, predicted=_predicted(built.problem, requested, simulation.options))
    return found


def _warn(built: BuiltModel) -> None:
    """Print the warnings of the model."""
    for warning in built.warnings:
        warn(warning)


def _draw(built: BuiltModel, path: Path) -> None:
    """Draw the geometry of a model on its grid."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--picture is expected to end in {', '.join(FORMATS)}, got '{path.name}'.")
    if not isinstance(built, PicturedBuilt):
        raise UsageError("--picture takes a kind of model that can be drawn, got one that cannot; leave it out.")
    Folder(path.parent).prepare("--picture FILE")
    built.picture(path)
    typer.echo(f"wrote {path}")


def _seconds_per_step(simulation: Simulation) -> float:
    """The median of a few trials after a warm-up, each of enough iterations to be measured."""
    interval = 2 * simulation.options.depth
    room = simulation.total_steps // interval // (TRIALS + 2)

    def trial(iterations: int) -> float:
        before = simulation.seconds
        simulation.run(iterations * interval)
        return (simulation.seconds - before) / (iterations * interval)

    trial(1)
    iterations = max(1, min(room, int(TRIAL_SECONDS / trial(1) / interval)))
    return statistics.median(trial(iterations) for _ in range(TRIALS))


def _predicted(problem: Problem, requested: RequestedOptions, options: Options) -> dict[StrategyName, float]:
    """Predicted seconds of a step under each strategy on virtual devices, with the other options unchanged."""
    from peergrid.predict.virtual import virtual_forecaster  # imports compilers

    plan = Placement.under(options, problem, requested.devices, requested.split).layout
    with virtual_forecaster(requested.devices, plan) as asked:
        ways = {name: one_iteration(plan, replace(options, strategy=name)) for name in STRATEGIES}
        found = {name: asked.seconds_per_step(schedule) for name, schedule in ways.items()}
    return dict(sorted(found.items(), key=lambda each: each[1]))


def _plan(name: str, built: BuiltModel, simulation: Simulation, per_step: float) -> Plan:
    layout, grid = simulation.layout, built.problem.grid
    whole = built.model.memory(computing=simulation.devices.kind == "cpu", writing=True)
    memory = tuple(layout.memory(device) for device in range(layout.devices))
    return Plan(
        model=name,
        shape=grid.shape,
        cells=grid.box.size,
        steps=built.steps,
        traces=1,
        dtype=grid.dtype,
        devices=str(simulation.devices),
        strategy=simulation.options.strategy,
        depth=simulation.options.depth,
        split=simulation.partition.parts,
        rows=tuple(simulation.partition.owned(device).shape[0] for device in range(layout.devices)),
        memory_per_device=memory,
        memory=sum(memory),
        host_memory=whole.cells + whole.records,
        snapshots=built.model.snapshots.size(grid, built.steps),
        gcells_per_s=grid.box.size / per_step / 1e9,
        seconds=per_step * built.steps,
        predicted={},
        notes=simulation.notes,
    )


def _runs(rows: tuple[int, ...]) -> str:
    """The rows of each device as text, such as '3 × 128, 127'."""
    alike = [(number, len(list(same))) for number, same in groupby(rows)]
    return ", ".join(f"{times} × {number}" if times > 1 else str(number) for number, times in alike)


def _text(found: Plan) -> str:
    rows = {
        "model": found.model,
        "grid": f"{' × '.join(map(str, found.shape))} = {found.cells:,} cells, {found.dtype}",
        "steps": f"{found.steps:,}",
        "devices": f"{found.devices}, split {'×'.join(map(str, found.split))}, rows {_runs(found.rows)}",
        "strategy": f"{found.strategy}, depth {found.depth}",
        "memory": f"{gibibytes(found.memory)}, at most {gibibytes(max(found.memory_per_device))} on one device; "
        f"at most {gibibytes(found.host_memory)} of host memory for the whole run",
        "time": f"about {duration(found.seconds)} at {megacells(found.gcells_per_s * 1e9)}, from a short trial",
    }
    if found.traces > 1:
        rows["survey"] = f"{found.traces:,} traces, {duration(found.traces * found.seconds)} of steps one after another"
    if found.snapshots:
        rows["files"] = f"at most {gibibytes(found.snapshots)} of snapshots"
    if found.predicted:
        ways = (f"{name} {duration(seconds)} a step" for name, seconds in list(found.predicted.items())[:SHOWN])
        rows["predicted"] = ", ".join(ways)
    return "\n".join(f"{key:<10}{value}" for key, value in rows.items())
