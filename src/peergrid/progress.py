"""The progress of a run on standard error: a bar on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

LINE_EVERY = 5.0  # seconds between two plain lines


def megacells(per_second: float) -> str:
    """A rate in cells per second as people read it."""
    rate = per_second / 1e6
    return f"{rate:,.0f} Mcells/s" if rate >= 10 else f"{rate:.2g} Mcells/s"


def duration(seconds: float) -> str:
    """A time as people read it, such as '3.2 ms', '17.7 s', '3 min 20 s' or '5 h 12 min'."""
    if seconds < 1:
        return f"{seconds * 1e6:.3g} µs" if seconds < 9.995e-4 else f"{seconds * 1e3:.3g} ms"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


class Reporter:
    """Shows steps done, Mcells/s and the time left; first: the step from which the run continues; noun: the word for
    steps.
    """

    def __init__(self, total: int, cells: int, quiet: bool, first: int = 0, noun: str = "step") -> None:
        self._total, self._cells, self._quiet, self._first = total, cells, quiet, first
        self._started = self._said = time.monotonic()
        self._noun = noun
        self._bar = _bar(noun) if not quiet and sys.stderr.isatty() else None
        self._task = self._bar.add_task("", total=total, rate="") if self._bar else None

    def update(self, step: int) -> None:
        """Show the number of steps done."""
        now = time.monotonic()
        rate = megacells(self._cells * (step - self._first) / max(now - self._started, 1e-9))
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=step, rate=rate)
        elif not self._quiet and now - self._said >= LINE_EVERY:
            self._said = now
            left = (now - self._started) / max(step - self._first, 1) * (self._total - step)
            print(
                f"{self._noun} {step} of {self._total}, {rate}, {duration(max(1, round(left)))} left",
                file=sys.stderr,
                flush=True,
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(noun: str) -> Progress:
    columns = (
        TextColumn(noun + " {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
