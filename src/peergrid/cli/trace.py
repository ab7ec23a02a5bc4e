"""`peergrid trace`: a measured timeline of all operations, for Perfetto or chrome://tracing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import AsJson, CommandLineOptions, ModelFile, arranging
from peergrid.cli.notes import announce, print_notes
from peergrid.cli.replace import guard
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.jobs.folder import Folder
from peergrid.models import read
from peergrid.result import Timeline
from peergrid.schedule import Schedule, one_iteration
from peergrid.schedule.timeline import START, VIEWERS
from peergrid.simulate import Simulation

MOST = 5_000  # steps: thousands of operations each
INTERVALS = 4  # default number of exchange intervals in the timeline


@dataclass(frozen=True)
class Traced:
    """The keys of `trace --json`. steps: in the timeline, after as many to warm up; seconds: its length;
    predicted_seconds: its predicted length, or None; boundary, interior, exchange: seconds of a step that these take on
    the busiest device, overlapped or not.
    """

    model: str
    devices: str
    strategy: str
    depth: int
    steps: int
    operations: int
    seconds: float
    predicted_seconds: float | None
    boundary: float
    interior: float
    exchange: float
    exposed_communication: float
    output: str
    notes: tuple[str, ...]


@arranging
def trace(
    model: ModelFile,
    arguments: CommandLineOptions,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Write the timeline here.")] = Path(
        "trace.json"
    ),
    steps: Annotated[int | None, typer.Option("--steps", metavar="N", help="Steps in the timeline.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run some steps of a model and write a timeline of every device's operations."""
    if steps is not None and steps < 1:
        raise UsageError(f"'--steps' takes a whole number above 0, got {steps}.")
    if steps is not None and steps > MOST:
        raise UsageError(f"A timeline has at most {MOST:,} steps, as viewers show no more, got {steps:,}.")
    if output.is_dir():
        raise UsageError(f"'--output' of trace names a file, got the folder '{output}'; add a name such as trace.json.")
    Folder(output.parent).prepare("-o FILE")
    guard(output, "timeline", START)
    described = read(model)
    requested = arguments.requested(described, writing=False)
    built = described.build()
    chosen = requested.resolve(built, None if as_json else announce)
    shown = steps or INTERVALS * chosen.options.depth
    with requested.simulation(built, chosen, 2 * shown) as simulation:
        simulation.run(shown)
        timeline = simulation.trace(shown)
        timeline = replace(timeline, predicted=predicted(simulation, timeline.schedule))
        found = _traced(str(model), simulation, timeline, str(output))
    with replacing(output) as partial:
        partial.write_text(json.dumps(timeline.chrome()))
    print_notes(found.notes)
    typer.echo(json.dumps(asdict(found), indent=2) if as_json else _text(found))


def _traced(name: str, simulation: Simulation, timeline: Timeline, output: str) -> Traced:
    parts, steps = timeline.split(), timeline.schedule.steps
    return Traced(
        model=name,
        devices=str(simulation.devices),
        strategy=simulation.options.strategy,
        depth=simulation.options.depth,
        steps=steps,
        operations=len(timeline.spans),
        seconds=_end(timeline),
        predicted_seconds=None if timeline.predicted is None else _end(timeline.predicted),
        boundary=parts.boundary / steps,
        interior=parts.interior / steps,
        exchange=parts.exchange / steps,
        exposed_communication=simulation.exposed_communication() or 0.0,
        output=output,
        notes=simulation.notes,
    )


def predicted(simulation: Simulation, schedule: Schedule) -> Timeline | None:
    """The predicted timeline of a schedule; None if there is no prediction."""
    devices, problem, options = simulation.devices, simulation.problem, simulation.options
    if simulation.comm is not None:
        return None
    if devices.kind == "cpu":
        from peergrid.predict.virtual import virtual_forecaster  # imports compilers

        interval = one_iteration(simulation.layout, options)
        with virtual_forecaster(devices, simulation.layout) as forecaster:
            return Timeline(schedule, forecaster.spans(schedule, interval))
    from peergrid.predict.here import forecaster_here

    elsewhere = forecaster_here(problem, devices, split=simulation.layout.partition)
    return None if elsewhere is None else Timeline(*elsewhere.spans(schedule))


def _end(timeline: Timeline) -> float:
    return max((span.end for span in timeline.spans), default=0.0)


def _text(found: Traced) -> str:
    spent = f"{found.operations} operations in {found.seconds * 1e3:.3g} ms"
    if found.predicted_seconds is not None:
        spent += f" ({found.predicted_seconds * 1e3:.3g} ms predicted)"
    return (
        f"{found.steps} steps on {found.devices} ({found.strategy}, depth {found.depth}): {spent}, "
        f"{found.exposed_communication:.1%} of it without computation\n"
        f"a step: boundary regions {found.boundary * 1e3:.3g}, interiors {found.interior * 1e3:.3g}, exchange "
        f"{found.exchange * 1e3:.3g} ms on the busiest device\n"
        f"{found.output}: {VIEWERS}"
    )
