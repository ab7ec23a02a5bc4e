"""A survey as one job: every trace is a run, written when it is done, and all are merged at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np

from peergrid.arguments import check_flag, path_of
from peergrid.errors import UsageError
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import RequestedOptions, requested_of
from peergrid.jobs.run import model_of
from peergrid.jobs.share import Share, fastest, groups
from peergrid.jobs.traces import DAMAGED, FILES, TraceFiles, digest_of
from peergrid.jobs.workers import share_out
from peergrid.models import Model
from peergrid.models.survey import FoundBuilt, SurveyedBuilt, SurveyedModel, Trace, shifts, surveyed
from peergrid.pauses import advance
from peergrid.runtime.devices import Devices
from peergrid.runtime.retain import hold
from peergrid.schedule import ResolvedOptions
from peergrid.stencil.identity import identity


@dataclass(frozen=True)
class Shot:
    """The figures of a finished trace. seconds: of stepping alone."""

    seconds: float
    options: ResolvedOptions
    notes: tuple[str, ...]


@dataclass(frozen=True)
class SurveyJob:
    """A survey with its files: the traces done, and the work that makes the others.

    first: the first trace's problem; share: how devices are shared.
    """

    model: SurveyedModel
    first: SurveyedBuilt
    folder: Folder
    files: TraceFiles
    requested: RequestedOptions
    share: Share

    def done(self, *, resume: bool) -> frozenset[int]:
        """The traces that an earlier run made: all, if it merged them and is resumed. Raises UsageError if there are
        some and the survey is not resumed.
        """
        if resume and self.merged() is not None:
            return frozenset(range(self.files.total))
        found = self.files.done()
        if found and not resume:
            raise UsageError(
                f"'{self.files.folder}' is expected to hold no traces where a survey begins, and holds {len(found)} of "
                "an earlier run: go on with '--resume', remove them, or choose another folder with -o DIR."
            )
        return frozenset(found)

    def make_traces(self, left: list[int], stopped: Callable[[], bool]) -> Iterator[tuple[int, Shot]]:
        """Make the traces with these numbers; yields each as soon as it is written."""
        work = TraceWork(self.model, self.files, self.requested)
        yield from share_out(work, left, groups(self.requested.devices, self.share), stopped)

    def merged(self) -> tuple[str, Path] | None:
        """The digest of all traces and the file in which an earlier run merged them; None if there is none."""
        for path in sorted(self.folder.path.glob("*.h5")):
            with suppress(*DAMAGED), h5py.File(path, "r") as file:
                if file.attrs.get("survey") == self.files.survey and not any(self.files.folder.glob(FILES)):
                    return str(file.attrs["sha256"]), path
        return None

    def merge(self) -> tuple[str, tuple[Path, ...]]:
        """Merge all traces, and remove their own files; returns the digest and the files of the survey, the merged one
        first.

        What an earlier run merged stays; of its other files those that are missing are written again.
        """
        known = self.merged()
        digest, file = known or self._merge_traces()
        others = self.first.write_others(file, lambda path: known is None or not path.exists())
        self.files.clear()
        return digest, (file, *others)

    def _merge_traces(self) -> tuple[str, Path]:
        """Merge all traces into one file; returns their digest and that file."""
        digest = hashlib.sha256("\n".join(digest_of(trace) for trace in self.files).encode()).hexdigest()
        about: dict[str, str | int] = {"sha256": digest, "survey": self.files.survey, "steps": self.first.steps}
        return digest, self.first.write_survey(self.folder.path, self.files, about)


@dataclass(frozen=True)
class SurveyResult:
    """The result of a survey. sha256: of all traces, the same on any devices; outputs: files, the merged one first."""

    traces: int
    sha256: str
    outputs: tuple[Path, ...]


def run_survey(
    model: Model | Path | str,
    folder: Path | str,
    *,
    devices: str | Devices | None = None,
    devices_per_trace: int | None = None,
    resume: bool = False,
) -> SurveyResult:
    """Run a survey as `peergrid run` does, and merge its traces.

    model: a model, or the path of a model file; devices: as in `Simulation`, by default those of its table `[run]`;
    devices_per_trace: None for the shortest predicted time; resume: make only the traces that are not in the folder
    yet. On several devices it starts several processes, so that a script has to call it under `if __name__ ==
    "__main__":`.
    Raises the errors of `run_model`.
    """
    described = surveyed(model_of(model))
    if described is None:
        raise UsageError("A model with a table [survey] is expected, got one without; use run_model for a single run.")
    check_flag("resume", resume)
    place = Folder(path_of("folder", folder))
    with place.taken():
        survey = survey_of(described, place, requested_of(described, devices), devices_per_trace)
        done = survey.done(resume=resume)
        for _ in survey.make_traces([n for n in range(survey.files.total) if n not in done], lambda: False):
            pass
        return SurveyResult(survey.files.total, *survey.merge())


def survey_of(model: SurveyedModel, folder: Folder, requested: RequestedOptions, each: int | None = None) -> SurveyJob:
    """The survey of a model; each: the devices of a trace, None for the predicted fastest.

    Raises UsageError if the model is not valid, or its results cannot be written.
    """
    model.check_results()
    moves = shifts(model)
    first = model.moved(moves[0]).build()
    files = TraceFiles(folder.traces, _digest(model, first), len(moves))
    share = fastest(first, requested.devices, len(moves), each)
    return SurveyJob(model, first, folder, files, requested, share)


@dataclass(frozen=True)
class TraceWork:
    """The work of a survey: run a trace, by its number, and write it."""

    model: SurveyedModel
    files: TraceFiles
    requested: RequestedOptions

    @contextmanager
    def on(self, devices: Devices) -> Iterator[Callable[[int], Shot]]:
        """A function that makes traces on some devices; all use the GPU contexts and the options of the first one."""
        own, moves, chosen = replace(self.requested, devices=devices), shifts(self.model), list[ResolvedOptions]()

        def traced(number: int) -> Shot:
            built = self.model.moved(moves[number]).build()
            if not chosen:
                chosen.append(own.resolve(built))
            trace, shot = make_trace(built, own, chosen[0])
            self.files.write(number, trace)
            return shot

        with hold(devices):
            yield traced


def make_trace(built: SurveyedBuilt, requested: RequestedOptions, chosen: ResolvedOptions) -> tuple[Trace, Shot]:
    """Make one trace. Raises Unstable if a field is not finite."""
    with requested.simulation(built, chosen, built.steps) as simulation:
        for _ in advance(simulation, built.steps, ()):
            simulation.check()
        records = simulation.traces()
        findings = built.findings(simulation.gather) if isinstance(built, FoundBuilt) else {}
        figures = Shot(simulation.seconds, replace(chosen, options=simulation.options), simulation.notes)
    units = {one.name: built.units.get(one.field, 1.0) for one in built.problem.receivers}
    values = [records[name] * records[name].dtype.type(units[name]) for name in built.receivers]
    return Trace(built.sources, tuple(built.receivers.values()), np.stack(values), findings), figures


def _digest(model: SurveyedModel, first: SurveyedBuilt) -> str:
    """A digest of everything that determines the traces: the first one's problem, and the positions of the others."""
    parts = (sorted(identity(first.problem).items()), first.steps, first.dt, sorted(first.units.items()), shifts(model))
    return hashlib.sha256(repr(parts).encode()).hexdigest()
