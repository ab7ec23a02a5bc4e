"""Measure with a worker process: a time limit per experiment, a new worker after a crash or a hang."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any

from peergrid.machine import decode
from peergrid.probe.experiment import Probe
from peergrid.probe.profile import Outcome
from peergrid.probe.runner import outcome

QUICK_LIMIT, FULL_LIMIT = 30.0, 90.0
START_LIMIT = 60.0

Say = Callable[[str], None]


def measure(
    probes: Sequence[Probe],
    quick: bool,
    say: Say = lambda text: None,
    limit: float | None = None,
    command: Sequence[str] = (sys.executable, "-m", "peergrid.probe.worker"),
) -> tuple[Outcome, ...]:
    """Run all experiments; each gets `limit` seconds, and one that fails is recorded as such.

    Args:
        probes: what to run, in this order.
        quick: fewer samples, smaller tables.
        say: told of each outcome as it comes.
        limit: seconds per experiment.
        command: how to start a worker.
    """
    found: list[Outcome] = []
    seconds = limit or (QUICK_LIMIT if quick else FULL_LIMIT)
    while rest := list(probes[len(found) :]):
        before = len(found)
        for item in _one_worker(rest, quick, seconds, command):
            found.append(item)
            say(f"{item.name}: {item.status}{': ' + item.reason if item.reason else ''} ({item.seconds:.1f} s)")
        if len(found) == before:  # the worker died before its first word: do not start it for ever
            found += [outcome(probe, "failed", "the measuring process did not start") for probe in rest]
    return tuple(found)


def _one_worker(probes: list[Probe], quick: bool, limit: float, command: Sequence[str]) -> list[Outcome]:
    """What one worker process yields until it ends, hangs or crashes."""
    words = [*command, *(["--quick"] if quick else []), *(probe.name for probe in probes)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            return _listen(process, probes, limit, errors)
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def _listen(process: Any, probes: list[Probe], limit: float, errors: IO[str]) -> list[Outcome]:
    found: list[Outcome] = []
    lines = _lines(process.stdout)
    while len(found) < len(probes):
        current = probes[len(found)]
        try:
            line = lines.get(timeout=limit if found else limit + START_LIMIT)
        except queue.Empty:
            return [*found, outcome(current, "timeout", f"it took longer than {limit:g} s", limit)]
        if line is None:
            return found if process.wait() == 3 else [*found, _crashed(current, process.wait(), errors)]
        message = json.loads(line) if line.startswith("{") else {}
        if "outcome" in message:
            found.append(decode(Outcome, message["outcome"], "the measuring process"))
    return found


def _lines(stream: IO[str]) -> queue.Queue[str | None]:
    """The lines of a stream as they come, then None."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        try:
            for line in stream:
                lines.put(line)
        except ValueError:  # closed under us, after a kill
            pass
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _crashed(probe: Probe, code: int, errors: IO[str]) -> Outcome:
    errors.seek(0)
    last = [line.strip() for line in errors.read().splitlines() if line.strip()][-1:]
    words = f": {last[0]}" if last else ""
    return outcome(probe, "failed", f"the measuring process ended with code {code}{words}")
