"""How a run on GPUs is best arranged: a few candidates carried out for some milliseconds, the fastest remembered.

Strategy and steps per pass change no bit of the result, so the choice may rest on a measurement. It is kept on disk
under the machine, the shape of the devices' boxes and the text of the kernels, so that every later run starts at once
and in the same way.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median

from peergrid.codegen.cuda.choose import block_of, lengths, several_steps
from peergrid.codegen.cuda.norm import NORM_ALIGN
from peergrid.errors import DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.driver import CudaDriver, Driver
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import Options, Schedule, layout, period
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem

WORTH_CELLS = 1 << 36  # cell updates of a device, from which on a run is worth a trial: about a tenth of a second
SMALL_CELLS = 1 << 22  # cells of a device up to which launches may cost more than the work
CANDIDATES = 3  # numbers of steps per pass to try
SAMPLES = 3
SAMPLE_SECONDS = 2e-3


@dataclass(frozen=True)
class Trial:
    """What is to run on which GPUs: `steps` steps of a problem, split as given, perhaps with a norm.

    cache: folder of compiled kernels and of what was found; driver: what to run on, the installed one by default.
    """

    problem: Problem
    partition: Partition
    ordinals: tuple[int, ...]
    steps: int
    norm: str | None = None
    cache: Path | None = None
    driver: Driver | None = None

    @property
    def worthwhile(self) -> bool:
        """Whether the run takes so long that choosing well matters."""
        return self.problem.grid.box.size * self.steps >= WORTH_CELLS * self.partition.devices

    def fastest(self, usual: Options, strategy: StrategyName | None = None, depth: int | None = None) -> Options:
        """The fastest arrangement, the strategy sought after the depth; what the caller names stays.

        usual: what is known without a device, taken where nothing else can be carried out.
        """
        depths = (depth,) if depth else lengths(self.problem, usual.depth, self.norm)[:CANDIDATES]
        strategies = (strategy,) if strategy else self._strategies
        if len(depths) == len(strategies) == 1:
            return Options(strategies[0], depths[0])
        place = self._place(depths, strategies)
        known = _remembered(place)
        if known is not None:
            return Options(*known)
        seconds = {(strategies[0], d): self._seconds(strategies[0], d) for d in depths}
        best = min(seconds, key=seconds.__getitem__)[1]
        seconds |= {(s, best): self._seconds(s, best) for s in strategies[1:]}
        found = min(seconds, key=seconds.__getitem__)
        if seconds[found] == inf:
            return usual
        _remember(place, found, seconds[found])
        return Options(*found)

    @property
    def _strategies(self) -> tuple[StrategyName, ...]:
        cells = self.problem.grid.box.size // self.partition.devices
        small: tuple[StrategyName, ...] = ("persistent",) if cells <= SMALL_CELLS else ()
        return (("peer", "overlap") if self.partition.devices > 1 else ("overlap",)) + small

    def _seconds(self, strategy: StrategyName, depth: int) -> float:
        """Seconds of one step, the median of some samples; infinite where the devices cannot do it this way."""
        options = Options(strategy, depth, block_of(self.problem, depth))
        try:
            plan = layout(self.problem, self.partition, options, NORM_ALIGN if self.norm else ())
            made = CudaExecutor(plan, self.steps, self.ordinals, cache=self.cache, driver=self.driver, norm=self.norm)
            with closing(made) as executor:
                return _step_seconds(executor, period(plan, options), self.steps)
        except (UsageError, DoesNotFit):  # said again, if nothing else can be done, by the run itself
            return inf

    def _place(self, depths: Sequence[int], strategies: Sequence[str]) -> Path | None:
        """Where the answer is kept: under the machine, the boxes, the candidates, and the kernels' text."""
        if self.cache is None:
            return None
        driver = self.driver or CudaDriver()
        boxes = [self.partition.owned(device) for device in range(self.partition.devices)]
        kernels = [kernel for d in depths if (kernel := several_steps(self.problem, d, self.norm)) is not None]
        texts = [launch.program.source for kernel in kernels for launch in kernel.launches(boxes[0], 1)]
        facts = (driver.architecture(self.ordinals[0]), self.ordinals, boxes, depths, strategies, texts)
        return self.cache / "trials" / f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.json"


def _step_seconds(executor: CudaExecutor, schedule: Schedule, most: int) -> float:
    """Samples of as many turns as take `SAMPLE_SECONDS`, as far as a run of `most` steps allows."""
    room, done = most // schedule.steps // (SAMPLES + 2), 0

    def sample(turns: int) -> float:
        nonlocal done
        started = time.perf_counter()
        executor.execute(schedule, turns, done * schedule.steps)
        done += turns
        return (time.perf_counter() - started) / turns / schedule.steps

    if room < 1:
        return inf
    sample(1)
    turns = max(1, min(room, int(SAMPLE_SECONDS / sample(1) / schedule.steps)))
    return median(sample(turns) for _ in range(SAMPLES))


def _remembered(place: Path | None) -> tuple[StrategyName, int] | None:
    """What an earlier trial found; None where there is none or it cannot be read."""
    try:
        found = json.loads(place.read_text()) if place is not None else {}
        return (found["strategy"], found["depth"]) if found["strategy"] in STRATEGIES else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(place: Path | None, found: tuple[StrategyName, int], seconds: float) -> None:
    """Keep an answer; a folder that cannot be written costs the next run a trial, not this one its result."""
    if place is None:
        return
    partial = place.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"strategy": found[0], "depth": found[1], "seconds_per_step": seconds}))
        partial.replace(place)
