"""`peergrid farm`: a command over many inputs, one job at a time on each GPU or share of the processors."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from peergrid.cli.choose import AsJson, folder_named
from peergrid.cli.notes import print_notes
from peergrid.cli.stop import StopRequest, stop_on_signal
from peergrid.errors import CheckFailed, UsageError
from peergrid.farm import Done, FarmFolder, Job, JobQueue, JobSlot, make_jobs, parse_slots, work
from peergrid.farm.jobs import read_lines
from peergrid.farm.work import LOOK_EVERY, adopted
from peergrid.progress import LINE_EVERY, duration

COMMAND = "command after --"
INTERRUPTED = 130
SHOWN = 5  # failed jobs named in the last sentence


class FarmCommand(TyperCommand):
    """A command line in which the words after the first '--' belong to another program."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # a subclass of theirs
        """Keep the words after '--' for `farm`, the others are parsed as usual."""
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta[COMMAND] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])


@dataclass(frozen=True)
class FarmSummary:
    """The object of `farm --json`."""

    command: tuple[str, ...]
    slots: tuple[str, ...]
    jobs: int
    done: int
    done_before: int
    failed: tuple[dict[str, str | int | None], ...]
    left: int
    retried: int
    seconds: float
    interrupted_by: str
    log: str


def farm(
    context: typer.Context,
    more: Annotated[list[str] | None, typer.Argument(metavar="[INPUT]...", help="More inputs.")] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("-i", "--input", metavar="INPUT...", help="Inputs, such as the names of files.")
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option(
            "--lines", metavar="FILE", help="A file with one input per line; '-' (or no input): standard input."
        ),
    ] = None,
    slots: Annotated[
        str, typer.Option("--slots", metavar="SPEC", help="auto, cpu:4, cuda, cuda:0+1,2+3 or cuda:nvlink.")
    ] = "auto",
    log: Annotated[
        Path,
        typer.Option(
            "--log", metavar="DIR", parser=folder_named("--log", "farm"), help="Folder for logs and exit codes."
        ),
    ] = Path("farm"),
    retries: Annotated[int, typer.Option("--retries", metavar="N", help="How often a failed job is tried again.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the farm in the folder of --log.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a command over many inputs: peergrid farm -i *.toml -- peergrid run {} -o out/{stem}."""
    if retries < 0:
        raise UsageError(f"'--retries' takes a whole number, 0 or more, got {retries}.")
    folder, places = FarmFolder(log), parse_slots(slots)
    earlier = folder.earlier() if resume else None
    if resume and earlier is None and not context.meta[COMMAND]:
        raise UsageError(f"'{log}' should hold a farm to continue, but has none; name its folder by --log.")
    command = tuple(context.meta[COMMAND]) or tuple(earlier["command"] if earlier else ())
    given = _inputs([*(inputs or []), *(more or [])], lines, needed=earlier is None)
    jobs = make_jobs(command, given or (earlier["inputs"] if earlier else ()))
    started = time.monotonic()
    with folder.taken(), stop_on_signal(noted=2) as stop:
        before = folder.begin(command, jobs, resume)
        queue, done_before = _run_jobs(jobs, places, folder, before, retries, stop)
    found = FarmSummary(
        command=command,
        slots=tuple(place.name for place in places),
        jobs=len(jobs),
        done=done_before + queue.done,
        done_before=done_before,
        failed=tuple(_failure(jobs[number - 1], folder) for number in queue.failed),
        left=len(queue.waiting) + queue.busy,
        retried=queue.retried,
        seconds=round(time.monotonic() - started, 3),
        interrupted_by=stop.name if stop else "",
        log=str(log),
    )
    typer.echo(json.dumps(asdict(found), indent=2) if as_json else _text(found))
    if found.left:
        raise typer.Exit(INTERRUPTED)
    if found.failed:
        raise CheckFailed(_failures(found))


def _inputs(named: list[str], lines: Path | None, needed: bool) -> list[str]:
    """The inputs of the command line, then those of a file; those of standard input if there are no others and some are
    needed.
    """
    if lines is None and (named or not needed or sys.stdin.isatty()):
        return named
    return [*named, *read_lines(sys.stdin if lines is None or str(lines) == "-" else lines)]


def _run_jobs(
    jobs: tuple[Job, ...],
    slots: tuple[JobSlot, ...],
    folder: FarmFolder,
    before: Done,
    retries: int,
    stop: StopRequest,
) -> tuple[JobQueue, int]:
    """Run the jobs that an earlier farm left. Returns the queue at the end, and the number of jobs done earlier."""
    there, strays = adopted(before, slots)
    if strays:
        print_notes([f"{len(strays)} jobs of the earlier farm still run on other job slots; waiting for them."])
        while not stop and any(folder.runs(job) for job in strays):
            time.sleep(LOOK_EVERY)
        before = folder.left(jobs)
        there, _ = adopted(before, slots)
    queue = JobQueue.of([job.number for job in jobs if job.number not in before.done], len(slots), retries, there)
    with_progress = Progress(len(jobs), len(before.done))
    return work(jobs, slots, queue, folder, lambda: stop.count, with_progress), len(before.done)


class Progress:
    """Progress on standard error: on a terminal one line that changes, elsewhere a line now and then."""

    def __init__(self, jobs: int, done_before: int) -> None:
        self._jobs, self._before = jobs, done_before
        self._started = self._said = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def __call__(self, queue: JobQueue) -> None:
        now = time.monotonic()
        if self._terminal:
            ending = "\n" if queue.finished else ""
            print(f"\r{self._line(queue, now)}\033[K", end=ending, file=sys.stderr, flush=True)
        elif now - self._said >= LINE_EVERY:
            self._said = now
            print(self._line(queue, now), file=sys.stderr, flush=True)

    def _line(self, queue: JobQueue, now: float) -> str:
        rate = (queue.done + len(queue.failed)) / max(now - self._started, 1e-9)
        words = [f"{self._before + queue.done} of {self._jobs} jobs done", f"{queue.busy} running"]
        words += [f"{len(queue.failed)} failed"] * bool(queue.failed)
        if rate:
            left = round((len(queue.waiting) + queue.busy) / rate)
            words.append(f"{rate:.3g} jobs/s, {duration(max(1, left))} left")
        return ", ".join(words) + ("; stopping when the running jobs have ended" if queue.draining else "")


def _failure(job: Job, folder: FarmFolder) -> dict[str, str | int | None]:
    code = folder.exit_code(job.number)
    return {"job": job.number, "input": job.input, "code": code, "log": str(folder.log(job.number))}


def _text(found: FarmSummary) -> str:
    words = [f"{found.done} of {found.jobs} jobs done in {found.seconds:.1f} s on {len(found.slots)} job slots"]
    words += [f"{found.done_before} of them earlier"] * bool(found.done_before)
    words += [f"{len(found.failed)} failed"] * bool(found.failed)
    words += [f"{found.left} left for --resume"] * bool(found.left)
    return ", ".join(words) + f"; logs are in '{found.log}'."


def _failures(found: FarmSummary) -> str:
    named = ", ".join(f"'{one['input']}' ({one['code']})" for one in found.failed[:SHOWN])
    more = f" and {len(found.failed) - SHOWN} more" if len(found.failed) > SHOWN else ""
    return (
        f"All {found.jobs} jobs should end with exit code 0, but {len(found.failed)} did not: {named}{more}; see their "
        f"logs in '{found.log}', and try them again with '--resume'."
    )
