"""`peergrid run`: run a model file and write its results."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import (
    AsJson,
    CommandLineOptions,
    ModelFile,
    Precision,
    Traces,
    arranging,
    folder_named,
    opened,
)
from peergrid.cli.notes import announce, print_notes, warn
from peergrid.cli.stop import StopRequest, stop_on_signal
from peergrid.cli.summary import Summary, summary, text
from peergrid.cli.survey import run_survey
from peergrid.cli.survey import text as survey_text
from peergrid.errors import UsageError
from peergrid.io.checkpoints import Period, checkpoint_files
from peergrid.jobs.folder import Folder
from peergrid.jobs.recording import Recording, recording
from peergrid.jobs.requested import RequestedOptions
from peergrid.jobs.run import check_folder, restore, step_to_end
from peergrid.models import BuiltModel, Model, read
from peergrid.models.survey import SurveyedModel, surveyed
from peergrid.progress import Reporter
from peergrid.runtime.fit import gibibytes
from peergrid.runtime.ranks.launcher import world
from peergrid.runtime.traffic import counted
from peergrid.simulate import Simulation

LARGE = 1 << 30  # bytes of snapshots from which on a run announces their size
FEW = 20  # one of so many parts of a run may be measured operation by operation


@arranging
def run(
    model: ModelFile,
    arguments: CommandLineOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            parser=folder_named("--output", "results/NAME"),
            help="Folder for the results (default: results/NAME).",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="Run N steps instead of the model's number.")
    ] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write results, or none.")] = True,
    keep_sources: Annotated[
        Path | None,
        typer.Option("--keep-sources", metavar="DIR", help="Write the kernels' CUDA C++ here, for profilers."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="PERIOD", help="Write a checkpoint every 500steps, 60s, 5min or 1h."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint, or begin.")] = False,
    devices_per_trace: Annotated[
        int | None,
        typer.Option("--devices-per-trace", metavar="N", help="For surveys (default: predicted fastest)."),
    ] = None,
    traces: Traces = None,
    dtype: Precision = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw pictures (gprMax input files).")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Run a model, or all traces of its survey, and write traces, fields, snapshots and pictures."""
    world()  # before anything is read, so that rank 0 reports errors for all
    described = _with_steps(opened(read(model), traces, dtype, pictures), steps)
    requested = arguments.requested(described, writing=write)
    place = Folder(output or Path("results") / model.stem)
    period = None if checkpoint is None else Period.read(checkpoint)
    if not write and (period is not None or resume):
        raise UsageError("Checkpoints are written to the folder of the results; leave out '--no-write'.")
    if (survey := surveyed(described)) is not None:
        _check_survey(write, checkpoint)
        _run_survey(str(model), survey, requested, place, devices_per_trace, resume=resume, as_json=as_json)
        return
    if devices_per_trace is not None:
        raise UsageError("'--devices-per-trace' is for surveys, got a model without one; leave it out.")
    folder = place if write and requested.leads else None
    asked = _Run(str(model), described, requested, folder, period, resume, as_json, keep_sources)
    with nullcontext() if folder is None else folder.taken():
        found = asked.done()
    if found is not None:
        typer.echo(json.dumps(asdict(found), indent=2) if as_json else text(found))


@dataclass(frozen=True)
class _Run:
    """A run of one model. folder: of the results (None: none are written here); period: of checkpoints."""

    name: str
    described: Model
    requested: RequestedOptions
    folder: Folder | None
    period: Period | None
    resume: bool
    quiet: bool
    keep_sources: Path | None

    @property
    def checkpointed(self) -> bool:
        """True if checkpoints in the folder are of this run."""
        return self.resume or self.period is not None

    def done(self) -> Summary | None:
        """The summary after the run; None on ranks that follow another."""
        built = self._built()
        chosen = self.requested.resolve(built, None if self.quiet else announce)
        opened = self.requested.simulation(built, chosen, built.steps, self.keep_sources)
        with opened as simulation, stop_on_signal() as stop:
            if not self.requested.leads:
                simulation.follow()
                return None
            simulation.lead()
            return self._led(built, simulation, stop)

    def _built(self) -> BuiltModel:
        """The model on its grid, with warnings and the size of large snapshots said."""
        if self.folder is not None:
            check_folder(self.folder, self.described, self.period, self.resume)
            if not self.checkpointed and checkpoint_files(self.folder.checkpoints):
                announce(
                    f"'{self.folder.checkpoints}' holds the checkpoints of an earlier run, which stay; '--resume' goes "
                    "on from them."
                )
        built = self.described.build()
        for warning in built.warnings if self.requested.leads else ():
            warn(warning)
        size = 0 if self.folder is None else built.model.snapshots.size(built.problem.grid, built.steps)
        if size > LARGE:
            announce(f"The snapshots will take up to {gibibytes(size)} on disk; take fewer, or set a stride, for less.")
        return built

    def _led(self, built: BuiltModel, simulation: Simulation, stop: StopRequest) -> Summary:
        """The run on the rank that leads: steps, and what is written."""
        folder = self.folder
        if self.resume and folder is not None and not restore(simulation, built, folder, warn):
            announce(f"There is no checkpoint in '{folder.checkpoints}'; the run starts at its first step.")
        resumed = simulation.step
        recorder = recording(folder, built, simulation, self.period, warn)
        with recorder as recorded, counted(simulation.devices) as moved:
            _advance(simulation, built, recorded, stop, quiet=self.quiet)
        simulation.check()
        print_notes(simulation.notes)
        found = summary(self.name, built, simulation, stop, resumed, moved)
        if folder is not None:
            found = _written(folder, built, recorded, found, hurried=stop.hurried)
            recorded.check()
            if self.checkpointed and not stop:
                folder.clear_checkpoints()
        return found


def _run_survey(
    name: str,
    survey: SurveyedModel,
    requested: RequestedOptions,
    place: Folder,
    each: int | None,
    *,
    resume: bool,
    as_json: bool,
) -> None:
    """Run all traces of a survey; every rank writes its own to the folder."""
    with place.taken() if requested.leads else nullcontext():
        shots = run_survey(name, survey, requested, place, each=each, resume=resume, quiet=as_json)
    if requested.leads:
        typer.echo(json.dumps(asdict(shots), indent=2) if as_json else survey_text(shots))


def _check_survey(write: bool, checkpoint: str | None) -> None:
    """Raise UsageError for options that a survey does not take."""
    if not write:
        raise UsageError("A survey writes its traces to the folder of the results; leave out '--no-write'.")
    if checkpoint is not None:
        raise UsageError("A survey writes each trace as soon as it is done; leave out '--checkpoint'.")


def _with_steps(described: Model, steps: int | None) -> Model:
    """The model with another number of steps. Raises UsageError for a number below 1."""
    if steps is None:
        return described
    if steps < 1:
        raise UsageError(f"'--steps' takes a whole number above 0, got {steps}.")
    return described.with_steps(steps)


def _written(folder: Folder, built: BuiltModel, recorded: Recording, found: Summary, *, hurried: bool) -> Summary:
    """Write the results; the summary with the files written. hurried: without pictures."""
    if hurried:
        announce(f"No pictures are drawn after {found.interrupted_by}, as the process may be killed soon.")
    taken = recorded.snapshots is not None
    paths = folder.finish(built, recorded.simulation, found.sha256, snapshots=taken, pictures=not hurried)
    return replace(found, outputs=tuple(str(path) for path in paths))


def _advance(simulation: Simulation, built: BuiltModel, recorded: Recording, stop: StopRequest, *, quiet: bool) -> None:
    """Step to the end, or to the first pause after a signal, where a run with checkpoints writes one."""
    _look_at_overlap(simulation, built.steps, recorded.every)
    with Reporter(built.steps, built.problem.grid.box.size, quiet, simulation.step) as reporter:

        def ended(step: int) -> bool:
            reporter.update(step)
            return bool(stop)

        step_to_end(simulation, built, recorded, ended)


def _look_at_overlap(simulation: Simulation, steps: int, every: tuple[int, ...]) -> None:
    """Measure the overlap of communication in one early period of a GPU run, if that is a small part of the run.

    Runs of several ranks have no timeline.
    """
    period = 2 * simulation.options.depth
    room = [steps // FEW, *filter(None, every)]
    alone = simulation.devices.kind == "cuda" and simulation.ranks == 1
    if alone and not simulation.step and 2 * period < min(room):
        simulation.run(period)
        simulation.trace(period)
