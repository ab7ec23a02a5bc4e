"""Autotuning of a run on GPUs: a few candidates carried out for some milliseconds, the fastest remembered.

Strategy, steps per pass, route and order change no bit of the result, so the choice may rest on a measurement. It is
kept on disk under the machine, the shape of the devices' boxes and the text of the kernels, so that every later run
starts at once and in the same way. Candidates of one depth share the devices' memory, those of others have it one after
another; none needs more than the usual way.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Any

from peergrid.codegen.cuda.choose.steps import block_of, split_at
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.errors import DeviceFault, DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.runtime.cuda.lowering.programs import Needed, Programs
from peergrid.runtime.cuda.memory.room import gpu_model, multiprocessors
from peergrid.schedule import Layout, Options, ResolvedOptions, Schedule, layout, one_iteration
from peergrid.schedule.build import repeated
from peergrid.stencil import Problem
from peergrid.trials.step_timer import StepTimer

WORTH_SECONDS = 1.0  # of a run, as predicted, from which on a trial pays: compiling its kernels takes seconds

Way = Options
"""A candidate."""


@dataclass(frozen=True)
class Trial:
    """The run that is to be tuned: `steps` steps of a problem, split as given, perhaps with a norm.

    ways: the candidates, the most promising first; cache: folder of compiled kernels and of what was found; driver:
    what to run on, the installed one by default; say: called, before devices are kept busy, with the reason.
    """

    problem: Problem
    partition: Partition
    ordinals: tuple[int, ...]
    steps: int
    ways: tuple[Way, ...]
    norm: str | None = None
    cache: Path | None = None
    driver: CudaDriver | None = None
    say: Callable[[str], None] | None = None

    def fastest(self, usual: Options) -> ResolvedOptions:
        """The fastest candidate; the usual way, where none can be carried out.

        Raises DeviceFault where the devices fail for good; a candidate that fails alone is left out.
        """
        if max(self.ordinals) >= self._driver.device_count():
            return ResolvedOptions(usual)  # the run says so
        if len(self.ways) == 1:
            return ResolvedOptions(self.ways[0])
        place = self._place()
        known = _remembered(place, self.ways)
        if known is not None:
            return ResolvedOptions(known, (f"{_words(known)}: the fastest of an earlier trial on these GPUs.",))
        if self.say is not None:
            self.say("compiling and trying a few ways to arrange the run; the fastest is remembered")
        started = time.perf_counter()
        seconds, faults = self._tried()
        found = min(seconds, key=seconds.__getitem__)
        if seconds[found] == inf:
            return ResolvedOptions(usual, faults)
        if not faults:
            _remember(place, found, seconds)
        return ResolvedOptions(found, (_account(found, seconds, time.perf_counter() - started), *faults))

    @cached_property
    def _driver(self) -> CudaDriver:
        return self.driver or CudaDriver()

    @cached_property
    def _gpu(self) -> GpuModel:
        return gpu_model(self.ordinals, self._driver)

    def _tried(self) -> tuple[dict[Way, float], tuple[str, ...]]:
        """Seconds of a step of each candidate, and a sentence for each that failed.

        A candidate that fails alone is left out; where the devices are lost with it, its fault is raised.
        """
        seconds, faults = dict[Way, float](), list[str]()
        depths = [way.depth for way in self.ways]
        with closing(Devices(self._driver, self.ordinals)) as devices:  # their contexts outlive each candidate
            self._compile(devices)
            with closing(StepTimer(self._executor, self.steps)) as timer:
                for way in sorted(self.ways, key=lambda way: depths.index(way.depth)):
                    try:
                        seconds[way] = self.step_seconds(way, timer)
                    except DeviceFault as fault:
                        _require_answer(devices, fault)
                        seconds[way] = inf
                        faults.append(f"{_words(way)}, was tried and left out: {fault}")
        return seconds, tuple(faults)

    def step_seconds(self, options: Options, timer: StepTimer) -> float:
        """Seconds of one step, the median of some samples; infinite where the devices cannot do it this way."""
        try:
            plan, schedule = self._arranged(options)
            return timer.seconds(schedule, plan)
        except (UsageError, DoesNotFit):  # said again, if nothing else can be done, by the run itself
            return inf

    def _executor(self, plan: Layout) -> CudaExecutor:
        return CudaExecutor(plan, self.steps, self.ordinals, cache=self.cache, driver=self._driver, norm=self.norm)

    def _place(self) -> Path | None:
        """The file of the answer: under the machine, the boxes, the candidates, and the kernels' text."""
        if self.cache is None:
            return None
        gpus = sorted(set(self.ordinals))
        machine = [(self._driver.name(gpu), [self._driver.reaches(gpu, peer) for peer in gpus]) for gpu in gpus]
        boxes = [self.partition.owned(device) for device in range(self.partition.devices)]
        texts = [text for needed in self._needed for text in needed.texts]
        texts += [kernel.layer.source for needed in self._needed for kernel in needed.striped if kernel.layer]
        texts += [str(reduction) for reduction in self.problem.reductions]
        facts = (machine, self.ordinals, boxes, [_named(way) for way in self.ways], texts)
        return self.cache / "trials" / f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.json"

    def _compile(self, devices: Devices) -> None:
        """Compile what the candidates need side by side, where there is a cache in which they find it."""
        if self.cache is not None:
            with closing(Programs(devices, self.cache)) as programs:
                programs.expect(self._needed)
                programs.settle()

    @cached_property
    def _needed(self) -> tuple[Needed, ...]:
        """The texts of each candidate that there are kernels for."""
        found, room = list[Needed](), multiprocessors(self.ordinals, self._driver)
        for way in self.ways:
            with suppress(UsageError):  # said by the candidate
                plan, schedule = self._arranged(way)
                found.append(Kernels(plan, self.norm, self._gpu, room, self._reaches).needed(schedule))
        return tuple(found)

    def _reaches(self, device: int, other: int) -> bool:
        return self._driver.reaches(self.ordinals[device], self.ordinals[other])

    def _arranged(self, way: Way) -> tuple[Layout, Schedule]:
        """The memory of a candidate, and the schedule that a run repeats; without its reductions where those are far
        apart.
        """
        options = replace(way, block=block_of(self.problem, way.depth, self._gpu, self.norm))
        align = split_at(self.problem, self.partition, self.norm, self._gpu)
        plan = layout(self.problem, self.partition, options, align)
        return plan, one_iteration(plan, options, start=None if repeated(self.problem) is None else 0)


def _require_answer(devices: Devices, fault: DeviceFault) -> None:
    """Raise the fault of a candidate where the devices are lost with it."""
    try:
        devices.synchronize()
    except DeviceFault:
        raise fault from None


def _words(way: Way) -> str:
    route = f", route '{way.route}'" if way.route else ""
    order = f", order '{way.order}'" if way.order != Options().order else ""
    return f"'{way.strategy}', depth {way.depth}{route}{order}"


def _named(way: Way) -> dict[str, Any]:
    """The parts of a candidate by which an answer names it."""
    return {"strategy": way.strategy, "depth": way.depth, "order": way.order, "route": way.route}


def _account(found: Way, seconds: Mapping[Way, float], spent: float) -> str:
    """A sentence about a trial: what it chose, against what, and what it cost."""
    others = [
        f"{_words(way)}: {f'{time * 1e6:.3g}' if isfinite(time) else 'not possible'}"
        for way, time in seconds.items()
        if way != found
    ]
    return (
        f"{_words(found)}: the fastest of {len(seconds)} ways tried in {spent:.2g} s, {seconds[found] * 1e6:.3g} µs "
        f"per step ({'; '.join(others)}); later runs like this one use it without a trial."
    )


def _remembered(place: Path | None, ways: Iterable[Way]) -> Way | None:
    """The candidate that an earlier trial found; none where there was no trial or it cannot be read."""
    try:
        found = json.loads(place.read_text())["fastest"] if place is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return next((way for way in ways if _named(way) == found), None)


def _remember(place: Path | None, found: Way, seconds: Mapping[Way, float]) -> None:
    """Keep an answer; a folder that cannot be written costs the next run a trial, not this one its result."""
    if place is None:
        return
    partial = place.with_suffix(f".{os.getpid()}")
    tried = {_words(way): time for way, time in seconds.items() if isfinite(time)}
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"fastest": _named(found), "seconds_per_step": tried}))
        partial.replace(place)
