"""`peergrid run` of a model with a survey: many traces as one job, each written when it is done."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from peergrid.cli.notes import print_notes, warn
from peergrid.cli.stop import StopRequest, stop_on_signal
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import RequestedOptions
from peergrid.jobs.share import Share
from peergrid.jobs.survey import Shot, SurveyJob, survey_of
from peergrid.models.survey import SurveyedModel
from peergrid.progress import Reporter, duration, megacells
from peergrid.runtime.ranks.launcher import apart
from peergrid.runtime.ranks.ranks import Ranks

NO_SNAPSHOTS = "The model asks for snapshots, but a survey takes none."


@dataclass(frozen=True)
class SurveySummary:
    """The keys of `run --json` where the model has a survey.

    steps: of each trace; devices: of each rank; devices_per_trace: of those, the devices that work on one trace; done:
    the number of traces done; resumed_from: the number of these that an earlier run had made; seconds: of this run,
    from the start of workers to the last trace written; seconds_per_trace: over the traces of this run;
    predicted_seconds: of all traces, for GPUs; sha256: of all traces, the same on any devices, '' if some are not done.
    """

    model: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    dtype: str
    traces: int
    done: int
    resumed_from: int
    devices: str
    devices_per_trace: int
    strategy: str
    depth: int
    seconds: float
    seconds_per_trace: float
    predicted_seconds: float | None
    gcells_per_s: float
    sha256: str
    interrupted_by: str
    notes: tuple[str, ...]
    outputs: tuple[str, ...]


def run_survey(
    name: str,
    described: SurveyedModel,
    requested: RequestedOptions,
    folder: Folder,
    *,
    each: int | None,
    resume: bool,
    quiet: bool,
) -> SurveySummary:
    """Make the traces that are left of a survey, and merge all when done; each of several ranks makes its share."""
    survey = survey_of(described, folder, replace(requested, comm=None), each)
    ranks, leads = None if requested.comm is None else Ranks(requested.comm), requested.leads
    for warning in (*survey.first.warnings, *[NO_SNAPSHOTS] * bool(described.snapshots.every)) if leads else ():
        warn(warning)
    there = survey.done(resume=resume) if ranks is None else ranks.decided(lambda: survey.done(resume=resume))
    left = [number for number in range(survey.files.total) if number not in there]
    if leads:
        print_notes(_shared(survey, len(left), ranks))
    mine = left if ranks is None else left[ranks.comm.rank :: ranks.comm.size]
    started = time.perf_counter()
    with stop_on_signal() as stop:
        with apart(ranks):
            shots = _make_traces(survey, mine, len(there), stop, quiet or not leads)
        if ranks is not None:
            shots = [shot for part in ranks.allgather(shots) for shot in part]
        seconds = time.perf_counter() - started
        found = _summary(name, survey, len(there), shots, seconds, stop)
        with apart(ranks):
            if leads and found.done == found.traces:
                digest, written = survey.merge()
                found = replace(found, sha256=digest, outputs=tuple(map(str, written)))
    if leads:
        print_notes(found.notes)
    return found


def text(found: SurveySummary) -> str:
    """The figures as text."""
    left = "; continue with '--resume'" if found.done < found.traces else ""
    ended = f", ended by {found.interrupted_by}{left}" if found.interrupted_by else ""
    made = (
        f"{duration(found.seconds)}, {duration(found.seconds_per_trace)} a trace, {megacells(found.gcells_per_s * 1e9)}"
    )
    how = f"{found.devices_per_trace} of {found.devices} ({found.strategy}, depth {found.depth})"
    none = found.resumed_from == found.traces
    lines = [
        f"{found.done} of {found.traces} traces, each {' × '.join(map(str, found.shape))} cells and {found.steps} "
        f"steps{', by an earlier run' if none else f' on {how}'}{ended}",
        *([] if none else [made]),
        *([f"sha256 {found.sha256}"] if found.sha256 else []),
        *found.outputs,
    ]
    return "\n".join(lines)


def _shared(survey: SurveyJob, left: int, ranks: Ranks | None) -> tuple[str, ...]:
    share, devices = survey.share, survey.requested.devices
    if ranks is not None:
        return (f"{ranks.comm.size} ranks share {left} traces; each runs its traces on {devices}.",)
    if devices.count == 1 or not left:
        return ()
    predicted = "" if share.seconds is None else f", predicted to take {duration(share.seconds)}"
    return (f"Each trace runs on {_devices(share)} of {devices}, {share.at_once} at a time{predicted}.",)


def _devices(share: Share) -> str:
    return f"{share.each} device{'s' * (share.each > 1)}"


def _make_traces(survey: SurveyJob, left: list[int], before: int, stop: StopRequest, quiet: bool) -> list[Shot]:
    cells, shots = survey.first.problem.grid.box.size * survey.first.steps, list[Shot]()
    with Reporter(before + len(left), cells, quiet, before, "trace") as reporter:
        for number, (_, shot) in enumerate(survey.make_traces(left, lambda: bool(stop)), start=before + 1):
            shots.append(shot)
            reporter.update(number)
    return shots


def _summary(
    name: str, survey: SurveyJob, there: int, shots: list[Shot], seconds: float, stop: StopRequest
) -> SurveySummary:
    problem, steps = survey.first.problem, survey.first.steps
    chosen = shots[0].options.options if shots else None
    return SurveySummary(
        model=name,
        shape=problem.grid.shape,
        cells=problem.grid.box.size,
        steps=steps,
        dtype=problem.grid.dtype,
        traces=survey.files.total,
        done=there + len(shots),
        resumed_from=there,
        devices=str(survey.requested.devices),
        devices_per_trace=survey.share.each,
        strategy=chosen.strategy if chosen else "",
        depth=chosen.depth if chosen else 0,
        seconds=seconds,
        seconds_per_trace=seconds / max(1, len(shots)),
        predicted_seconds=survey.share.seconds,
        gcells_per_s=problem.grid.box.size * steps * len(shots) / seconds / 1e9,
        sha256="",
        interrupted_by=stop.name if stop else "",
        notes=shots[0].notes if shots else (),
        outputs=(),
    )
