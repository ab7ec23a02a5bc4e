"""One run of a model with all its files: results, pictures, snapshots, checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from peergrid.arguments import brief, check_flag, path_of
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.io.checkpoints import Period, checkpoint_files, newest
from peergrid.jobs.folder import Folder
from peergrid.jobs.recording import ABOUT, STEPS, Recording, recording, snapshots_in_words
from peergrid.jobs.requested import requested_of
from peergrid.models import BuiltModel, Model, read
from peergrid.models.survey import shifts, surveyed
from peergrid.pauses import advance
from peergrid.result import named_arrays
from peergrid.runtime.devices import Devices
from peergrid.schedule.strategies import StrategyName
from peergrid.simulate import Simulation

Say = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class ModelResult:
    """The results of a model's run, in SI units.

    times: of the values of traces, seconds; traces: by the names of receivers, shape (steps,); fields: the final values
    of fields that have a unit; sha256: of the final fields as stored, the same on any devices; seconds: of stepping
    alone; outputs: the files written.
    """

    model: BuiltModel
    times: Array
    traces: Mapping[str, Array]
    fields: Mapping[str, Array]
    steps: int
    seconds: float
    sha256: str
    outputs: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        traces = f"{len(self.traces)} trace{'s' if len(self.traces) != 1 else ''}"
        return f"ModelResult: {named_arrays(self.fields)}; {traces}; {self.steps} steps, {self.seconds:.3g} s"


def run_model(
    model: Model | Path | str,
    folder: Path | str | None = None,
    *,
    devices: str | Devices | None = None,
    strategy: StrategyName | None = None,
    depth: int | None = None,
    checkpoint: str | None = None,
    resume: bool = False,
    call: Callable[[Simulation], object] | None = None,
) -> ModelResult:
    """Run a model as `peergrid run` does; options that are not given are those of its table `[run]`.

    model: a model, or the path of a model file; folder: for results, snapshots, pictures and checkpoints, None to write
    nothing; devices: as in `Simulation`; checkpoint: a period such as '500steps' or '60s'; resume: continue from the
    newest checkpoint in the folder; call: called with the simulation at every pause, several times a second. Warnings
    of the model are issued by Python's `warnings`.
    Raises the errors of `Simulation`, Unstable if a field is not finite, UsageError if a file cannot be written; the
    others are written before.
    """
    described = model_of(model)
    check_flag("resume", resume)
    if call is not None and not callable(call):
        raise UsageError(f"'call' takes a function of the simulation, got {brief(call)}.")
    if (many := surveyed(described)) is not None:
        warnings.warn(f"The model has a survey of {len(shifts(many))} traces; run_survey runs them.", stacklevel=2)
    period = None if checkpoint is None else Period.read(checkpoint)
    if folder is None and (period is not None or resume):
        raise UsageError("Checkpoints are written to the folder of the results; give 'folder' too.")
    place = None if folder is None else Folder(path_of("folder", folder))
    requested = requested_of(described, devices, strategy, depth)
    with nullcontext() if place is None else place.taken():
        if place is not None:
            check_folder(place, described, period, resume)
        built = described.build()
        for sentence in built.warnings:
            warnings.warn(sentence, stacklevel=2)
        with requested.simulation(built, requested.resolve(built), built.steps) as simulation:
            if resume and place is not None:
                restore(simulation, built, place, _warn)
            with recording(place, built, simulation, period, _warn) as recorded:
                step_to_end(simulation, built, recorded, _pause_handler(call, simulation))
            simulation.check()
            result = _finished(built, recorded, place)
            recorded.check()
            if place is not None and (resume or period is not None):
                place.clear_checkpoints()
            return result


def model_of(given: Model | Path | str) -> Model:
    """A model, or that of a model file."""
    if isinstance(given, Path | str):
        return read(given)
    if not hasattr(type(given), "build"):
        raise UsageError(f"A model is expected, or the path of a model file, got {brief(given)}.")
    return given


def _pause_handler(call: Callable[[Simulation], object] | None, simulation: Simulation) -> Callable[[int], bool]:
    """A function for pauses that calls `call` and never ends the run."""

    def handler(_step: int) -> bool:
        if call is not None:
            call(simulation)
        return False

    return handler


def check_folder(folder: Folder, described: Model, period: Period | None, resume: bool) -> None:
    """Check, before anything is computed, that the folder has no files of an earlier run and that results can be
    written.
    """
    described.check_results()
    if period is not None and not resume and checkpoint_files(folder.checkpoints):
        raise UsageError(
            f"'{folder.checkpoints}' is expected to hold no checkpoints where a run begins, and holds those of an "
            "earlier one: go on from them with '--resume', remove them, or choose another folder with -o DIR."
        )


def restore(simulation: Simulation, built: BuiltModel, folder: Folder, say: Say) -> bool:
    """Continue from the newest checkpoint; returns whether there is one. say: called with a sentence about each damaged
    one.

    Raises UsageError for one of another model.
    """
    state = newest(folder.checkpoints, say)
    if state is None:
        return False
    taken, wanted = state.about.get(ABOUT, ""), snapshots_in_words(built)
    if taken != wanted:
        raise UsageError(
            f"The checkpoint is expected to be of a run with snapshots of {wanted or 'nothing'}, got one with "
            f"{taken or 'none'}; leave the table [output] as it was, or start anew."
        )
    steps = state.about.get(STEPS, str(built.steps))
    if steps != str(built.steps):
        raise UsageError(
            f"The checkpoint is expected to be of a run of {built.steps} steps, got one of {steps}; leave the time of "
            "the model and '--steps' as they were, or start anew."
        )
    simulation.restore(state)
    return True


def step_to_end(simulation: Simulation, built: BuiltModel, recorded: Recording, ended: Callable[[int], bool]) -> None:
    """Step to the end, or to a pause at which `ended` returns true; a run with checkpoints then writes one.

    ended: called with the step at each pause.
    """
    for step in advance(simulation, built.steps, recorded.every, recorded.at):
        recorded.look(step)
        if ended(step):
            recorded.keep()
            return


def _finished(built: BuiltModel, recorded: Recording, folder: Folder | None) -> ModelResult:
    simulation = recorded.simulation
    digest, units = simulation.sha256(), built.units
    found = simulation.traces()
    receivers = {one.name: one.field for one in built.problem.receivers}
    return ModelResult(
        model=built,
        times=built.trace_start + built.dt * np.arange(simulation.step),
        traces=MappingProxyType(
            {name: _scaled(found[name], units.get(field, 1.0)) for name, field in receivers.items()}
        ),
        fields=MappingProxyType({name: _scaled(simulation.gather(name), unit) for name, unit in units.items()}),
        steps=simulation.step,
        seconds=simulation.seconds,
        sha256=digest,
        outputs=()
        if folder is None
        else folder.finish(built, simulation, digest, snapshots=recorded.snapshots is not None),
    )


def _scaled(values: Array, unit: float) -> Array:
    found: Array = values * values.dtype.type(unit)
    return found


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)
