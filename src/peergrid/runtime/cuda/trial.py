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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import inf, isfinite
from pathlib import Path
from typing import Any

from peergrid.codegen.cuda import onestep
from peergrid.codegen.cuda.choose.steps import block_of, lengths, several_steps, split_at
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.persistent_choice import persistent_kernel, saves_launches
from peergrid.codegen.cuda.stream3d.choose import one_pass
from peergrid.errors import DeviceFault, DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.runtime.cuda.lowering.programs import Programs
from peergrid.runtime.cuda.memory.room import gpu_model, multiprocessors
from peergrid.runtime.cuda.step_timer import StepTimer
from peergrid.schedule import Layout, Options, ResolvedOptions, Schedule, layout, one_iteration
from peergrid.schedule.build import repeated
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes

WORTH_SECONDS = 1.0  # of a run, as foretold, from which on a trial is worth its kernels: compilers take seconds
CANDIDATES = 2  # numbers of steps per pass to try: the third was never the best where all were tried
SLOW_DOUBLE = 8  # times as long as in single precision: there several steps may cost more than they save

Way = Options
"""A candidate."""


@dataclass(frozen=True)
class Trial:
    """The run that is to be tuned: `steps` steps of a problem, split as given, perhaps with a norm.

    cache: folder of compiled kernels and of what was found; driver: what to run on, the installed one by default;
    say: told, before devices are kept busy, what they are kept busy with; ways: the candidates to be tried, the most
    promising first (empty: those that rules of thumb name); foretold: seconds of a step under the first of them.
    """

    problem: Problem
    partition: Partition
    ordinals: tuple[int, ...]
    steps: int
    norm: str | None = None
    cache: Path | None = None
    driver: CudaDriver | None = None
    say: Callable[[str], None] | None = None
    ways: tuple[Way, ...] = ()
    foretold: float | None = None

    @property
    def worthwhile(self) -> bool:
        """True where the run takes so long that choosing well matters."""
        return self.steps * (self._least if self.foretold is None else self.foretold) >= WORTH_SECONDS

    @property
    def _least(self) -> float:
        """Seconds of a step that is a launch, and as fast as memory."""
        costs = self._gpu.costs
        return costs.calls.launch + minimal_bytes(self.problem) / self.partition.devices / costs.bandwidth

    def fastest(
        self, usual: Options, strategy: StrategyName | None = None, depth: int | None = None
    ) -> ResolvedOptions:
        """The fastest arrangement, the strategy sought after the depth; what the caller names stays.

        usual: what is known without a device, with the order and the route that are asked for; what a trial cannot
        tell stays so. Raises DeviceFault where the devices fail for good; a candidate that fails alone is left out.
        """
        usual = replace(usual, strategy=strategy or usual.strategy, depth=depth or usual.depth)
        if max(self.ordinals) >= self._driver.device_count():
            return ResolvedOptions(usual)  # the run says so
        strategies = (strategy,) if strategy else self._strategies
        depths = (depth,) if depth else self._depths(usual.depth)
        ways = self.ways or tuple(replace(usual, strategy=s, depth=d) for s, d in product(strategies, depths))
        if len(ways) == 1:
            return ResolvedOptions(ways[0])
        place = self._place(ways)
        known = _remembered(place, ways)
        if known is not None:
            return ResolvedOptions(known, (f"{_words(known)}: the fastest of an earlier trial on these GPUs.",))
        if self.say is not None:
            self.say("compiling and trying a few ways to arrange the run; the fastest is remembered")
        started = time.perf_counter()
        with closing(Devices(self._driver, self.ordinals)) as devices:  # their contexts outlive each candidate
            self._compile(devices, ways)
            with closing(self.timer()) as timer:
                attempts = _Attempts(self, devices, timer)
                if self.ways:
                    depths_in_order = [way.depth for way in ways]
                    attempts.make(sorted(ways, key=lambda way: depths_in_order.index(way.depth)))
                else:
                    attempts.search(usual, depths, strategies)
        faults, seconds = tuple(attempts.faults), attempts.seconds
        found = attempts.best
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

    @cached_property
    def _multiprocessors(self) -> tuple[int, ...]:
        return multiprocessors(self.ordinals, self._driver)

    @property
    def _strategies(self) -> tuple[StrategyName, ...]:
        cells = self.problem.grid.box.size // self.partition.devices
        flat = self.problem.grid.ndim == 2
        short = flat and saves_launches(self.problem, 1, cells, self._gpu.costs)
        small: tuple[StrategyName, ...] = ("persistent",) if short else ()
        return (("peer", "overlap") if self.partition.devices > 1 else ("overlap",)) + small

    def _depths(self, most: int) -> tuple[int, ...]:
        """The numbers of steps per pass to try; one by itself, too, where what several make twice costs the most."""
        found = lengths(self.problem, most, self.norm, self._gpu)[:CANDIDATES]
        volume, double = self.problem.grid.ndim == 3, self.problem.itemsize == 8
        slow = volume and double and max(map(self._driver.double_cost, self.ordinals)) >= SLOW_DOUBLE
        return (*found, 1) if (slow or self._streamed) and 1 not in found else found

    @cached_property
    def _streamed(self) -> tuple[str, ...]:
        """The programs of one step, where kernels that stream make it."""
        cells = max(self.partition.owned(device).size for device in range(self.partition.devices))
        kernel = one_pass(self.problem, self._gpu) if cells >= self._gpu.streamed_cells_3d else None
        return () if kernel is None else tuple(program.source for program in kernel.programs)

    def step_seconds(self, options: Options, timer: StepTimer) -> float:
        """Seconds of one step, the median of some samples; infinite where the devices cannot do it this way."""
        options = self._within_memory(options)
        try:
            plan = self._layout(options)
            return timer.seconds(_period(plan, options), plan)
        except (UsageError, DoesNotFit):  # said again, if nothing else can be done, by the run itself
            return inf

    def timer(self) -> StepTimer:
        """The measurement of the candidates."""
        make = partial(
            CudaExecutor,
            total_steps=self.steps,
            ordinals=self.ordinals,
            cache=self.cache,
            driver=self._driver,
            norm=self.norm,
        )
        return StepTimer(make, self.steps)

    def _place(self, ways: Sequence[Way]) -> Path | None:
        """The file of the answer: under the machine, the boxes, the candidates, and the kernels' text."""
        if self.cache is None:
            return None
        gpus, depths = sorted(set(self.ordinals)), tuple(dict.fromkeys(way.depth for way in ways))
        machine = [(self._driver.name(gpu), [self._driver.reaches(gpu, peer) for peer in gpus]) for gpu in gpus]
        boxes = [self.partition.owned(device) for device in range(self.partition.devices)]
        texts = self._texts(depths) or [onestep.program(self.problem, [boxes[:1]], self._gpu).source]
        texts += self._persistent(dict.fromkeys(way.depth for way in ways if way.strategy == "persistent"))
        texts += [str(reduction) for reduction in self.problem.reductions]
        facts = (machine, self.ordinals, boxes, [_named(way) for way in ways], texts)
        return self.cache / "trials" / f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.json"

    def _texts(self, depths: Sequence[int]) -> list[str]:
        """The programs of passes."""
        made = [kernel for d in depths if (kernel := several_steps(self.problem, d, self.norm, self._gpu)) is not None]
        box, single = self.partition.owned(0), self._streamed if 1 in depths else ()
        return [*single, *(launch.program.source for kernel in made for launch in kernel.launches(box, 1))]

    def _persistent(self, depths: Iterable[int]) -> list[str]:
        """The programs of many passes."""
        boxes = tuple(self.partition.owned(device) for device in range(self.partition.devices))
        found = (persistent_kernel(self.problem, depth, boxes, self._gpu, self._multiprocessors) for depth in depths)
        return [kernel.program.source for kernel in found if kernel is not None]

    def _compile(self, devices: Devices, ways: Iterable[Options]) -> None:
        """Compile what the candidates need side by side, where there is a cache in which they find it."""
        if self.cache is None:
            return
        with closing(Programs(devices, self.cache)) as programs:
            for options in map(self._within_memory, ways):
                with suppress(UsageError):  # said by the candidate
                    plan = self._layout(options)
                    kernels = Kernels(plan, self.norm, self._gpu, self._multiprocessors, self._reaches)
                    programs.expect([kernels.needed(_period(plan, options))])
            programs.settle()

    def _reaches(self, device: int, other: int) -> bool:
        return self._driver.reaches(self.ordinals[device], self.ordinals[other])

    def _within_memory(self, options: Options) -> Options:
        return replace(options, block=block_of(self.problem, options.depth, self._gpu, self.norm))

    def _layout(self, options: Options) -> Layout:
        align = split_at(self.problem, self.partition, self.norm, self._gpu)
        return layout(self.problem, self.partition, options, align)


class _Attempts:
    """The candidates tried so far: seconds of a step of each, and a sentence for each that failed."""

    def __init__(self, trial: Trial, devices: Devices, timer: StepTimer) -> None:
        self._trial, self._devices, self._timer = trial, devices, timer
        self.seconds: dict[Way, float] = {}
        self.faults: list[str] = []

    @property
    def best(self) -> Way:
        return min(self.seconds, key=self.seconds.__getitem__)

    def make(self, ways: Iterable[Way]) -> None:
        """Try all of them."""
        for way in ways:
            self._try(way)

    def search(self, usual: Options, depths: Sequence[int], strategies: Sequence[StrategyName]) -> None:
        """Try the depths under the first strategy, then the others at the best of them; 'persistent' wants its own."""
        self.make(replace(usual, strategy=strategies[0], depth=depth) for depth in depths)
        best = self.best.depth
        for strategy in strategies[1:]:
            tried = depths if strategy == "persistent" else (best,)
            self.make(replace(usual, strategy=strategy, depth=depth) for depth in tried)

    def _try(self, way: Way) -> None:
        """A candidate that fails alone is left out; where the devices are lost with it, its fault is raised."""
        try:
            self.seconds[way] = self._trial.step_seconds(way, self._timer)
        except DeviceFault as fault:
            try:
                self._devices.synchronize()
            except DeviceFault:
                raise fault from None
            self.seconds[way] = inf
            self.faults.append(f"{_words(way)}, was tried and left out: {fault}")


def _period(plan: Layout, options: Options) -> Schedule:
    """The schedule that a run repeats; without its reductions where those are far apart."""
    return one_iteration(plan, options, start=None if repeated(plan.problem) is None else 0)


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
        f"per step ({'; '.join(others)}); later runs like this one take it at once."
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
