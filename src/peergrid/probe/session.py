"""Measure with a worker process: time limits for each experiment and for all, a new worker after a crash or a hang."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from peergrid.machine import decode
from peergrid.probe.experiment import Probe
from peergrid.probe.profile import Outcome
from peergrid.probe.runner import STOPPED, outcome

QUICK_LIMIT, FULL_LIMIT = 30.0, 90.0
QUICK_TOTAL, FULL_TOTAL = 115.0, 590.0  # two and ten minutes, with what comes after
START_LIMIT = 60.0
NO_START = "the measuring process did not start"
OVER = "the time for all experiments together was over"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """The time for measuring: seconds for each experiment, and when all have to end (monotonic clock)."""

    each: float
    end: float

    def left(self) -> float:
        """Seconds left for all that is still to run."""
        return max(0.0, self.end - time.monotonic())


def measure(
    probes: Sequence[Probe],
    quick: bool,
    say: Say = lambda text: None,
    limit: float | None = None,
    total: float | None = None,
    command: Sequence[str] = (sys.executable, "-m", "peergrid.probe.worker"),
) -> tuple[Outcome, ...]:
    """Run all experiments; each gets `limit` seconds, all of them `total`; failures are recorded.

    Args:
        probes: what to run, in this order.
        quick: fewer samples, smaller tables.
        say: called with each outcome as it comes.
        limit: seconds per experiment; 30 or, in full, 90 by default.
        total: seconds for all; just below two or, in full, ten minutes by default.
        command: how to start a worker.
    """
    found: list[Outcome] = []
    end = time.monotonic() + (total or (QUICK_TOTAL if quick else FULL_TOTAL))
    budget = Budget(limit or (QUICK_LIMIT if quick else FULL_LIMIT), end)
    while rest := list(probes[len(found) :]):
        before = len(found)
        for item in _one_worker(rest, quick, budget, command) if budget.left() else _all(rest, "timeout", OVER):
            said = {one.reason for one in found if one.status == "impossible"}
            found.append(item)
            reason = "as above" if item.status == "impossible" and item.reason in said else item.reason
            say(f"{item.name}: {item.status}{f': {reason}' if reason else ''} ({item.seconds:.1f} s)")
        if len(found) == before:  # the worker died before its first message: do not start it again and again
            found += _all(rest, "failed", NO_START)
    return tuple(found)


def _all(probes: list[Probe], status: str, reason: str) -> list[Outcome]:
    return [outcome(probe, status, reason) for probe in probes]


def _one_worker(probes: list[Probe], quick: bool, budget: Budget, command: Sequence[str]) -> Iterator[Outcome]:
    """The outcomes from one worker process until it ends, hangs or crashes."""
    words = [*command, *(["--quick"] if quick else []), *(probe.name for probe in probes)]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield from _messages(process, probes, budget, errors)
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def _messages(process: Any, probes: list[Probe], budget: Budget, errors: IO[str]) -> Iterator[Outcome]:
    """The outcome of each experiment from the worker; after one that hangs or crashes, the reason, and no
    further ones.
    """
    lines, rest, timeout = _lines(process.stdout), list(probes), budget.each + START_LIMIT
    while rest:
        try:
            line = lines.get(timeout=min(budget.left(), timeout))
        except queue.Empty:
            why = f"it took longer than {budget.each:g} s" if budget.left() else OVER
            yield outcome(rest[0], "timeout", why, budget.each)
            return
        if line is None:
            if process.wait() != STOPPED:
                yield _crashed(rest[0], process.wait(), errors)
            return
        timeout = budget.each
        message = json.loads(line) if line.startswith("{") else {}
        if "outcome" in message:
            rest.pop(0)
            yield decode(Outcome, message["outcome"], "the measuring process")


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
