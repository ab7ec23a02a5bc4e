"""Checkpoints of a run in a folder, written by a background thread; and the search for the newest one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from peergrid.arguments import brief
from peergrid.errors import UsageError
from peergrid.io.checkpoint import read_state, write_state
from peergrid.result import State

KEPT = 2  # the newest ones, so that a damaged one is not the only one
FILES = "step-*.h5"
PERIOD = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(steps|s|min|h)")
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Period:
    """The period of checkpoints, in steps or in seconds."""

    steps: int = 0
    seconds: float = 0.0

    @classmethod
    def read(cls, text: str) -> Period:
        """The period of an option such as '500steps' or '60s'. Raises UsageError for other text."""
        found = PERIOD.fullmatch(text) if isinstance(text, str) else None
        if found is None or not float(found[1]) or (found[2] == "steps" and "." in found[1]):
            raise UsageError(
                f"Checkpoints are made after a period such as 500steps, 60s, 5min or 1h, got {brief(text)}."
            )
        number, unit = found.groups()
        return cls(steps=int(number)) if unit == "steps" else cls(seconds=float(number) * SECONDS[unit])


class Checkpoints:
    """The writer of a run's checkpoints; use as a context manager.

    say: called with a sentence if one cannot be written; the run continues, and earlier checkpoints stay.
    """

    def __init__(self, folder: Path, period: Period, say: Callable[[str], None]) -> None:
        self._folder, self._period, self._say = folder, period, say
        self._began = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    @property
    def every(self) -> int:
        """The number of steps at whose multiples the run has to pause; 0: at any step."""
        return self._period.steps

    def due(self, step: int) -> bool:
        """True if a checkpoint is due after a step; with a period in seconds, not while the previous one is being
        written.
        """
        if self._period.steps:
            return step % self._period.steps == 0
        writing = self._pending is not None and not self._pending.done()
        return not writing and time.monotonic() - self._began >= self._period.seconds

    def keep(self, state: State) -> None:
        """Write a state, after the previous one is written."""
        self.settle()
        self._began = time.monotonic()
        self._pending = self._thread.submit(self._write, state)

    def settle(self) -> None:
        """Wait until all states are on the disk."""
        pending, self._pending = self._pending, None
        try:
            if pending is not None:
                pending.result()
        except UsageError as error:
            self._say(f"A checkpoint could not be written, and the run continues without it: {error}")

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        self._thread.shutdown()

    def _write(self, state: State) -> None:
        write_state(self._folder / f"step-{state.step:012d}.h5", state)
        for old in checkpoint_files(self._folder)[KEPT:]:
            old.unlink(missing_ok=True)


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the newest first."""
    return sorted(folder.glob(FILES), reverse=True)


def newest(folder: Path, say: Callable[[str], None]) -> State | None:
    """The state in the newest undamaged checkpoint, or None; say: called with a sentence about each damaged one."""
    for file in checkpoint_files(folder):
        try:
            return read_state(file)
        except UsageError as error:
            say(str(error))
    return None
