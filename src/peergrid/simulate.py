"""One run of a problem on some devices: memory, schedules, and the step count, held together."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from peergrid.codegen.cuda.norm import NORM_ALIGN
from peergrid.errors import Unstable, UsageError
from peergrid.grid import Array, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.runtime.executor import Executor
from peergrid.runtime.fit import check_host_memory
from peergrid.schedule import Chosen, Layout, Options, Schedule, build, layout, period
from peergrid.schedule.exchange import Order
from peergrid.schedule.ops import Route
from peergrid.schedule.strategies import StrategyName
from peergrid.schedule.timeline import Span, chrome, exposed_communication
from peergrid.stencil import Problem, Stage, Update

CHECK_EVERY = 100  # steps between two looks for values that are not finite
CPU_DEPTH = 8  # ghost depth on virtual devices unless told otherwise: enough to work from the cache

ROWS_PER_STEP = 4  # rows of a device for each step of depth, so that most of its work is not redundant

FUSED: tuple[StrategyName, ...] = ("peer", "persistent")
APART = (
    "The kernels of '{}' exchange by themselves where they can, and no clock looks into them: the timeline and the "
    "exposed communication are those of the same operations carried out one by one."
)

KernelKind = Literal["compiled", "reference"]


@dataclass(frozen=True)
class Result:
    """What a finished run leaves: the final state fields, the receivers' records, and the time of stepping alone.

    notes: what was chosen by trial, and what was arranged otherwise than asked for, in sentences.
    """

    fields: Mapping[str, Array]
    traces: Mapping[str, Array]
    steps: int
    cells: int
    seconds: float
    sha256: str
    notes: tuple[str, ...] = ()

    @property
    def cells_per_second(self) -> float:
        return self.cells * self.steps / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Timeline:
    """A schedule as it was carried out once: when each operation ran."""

    schedule: Schedule
    spans: tuple[Span, ...]

    def chrome(self) -> dict[str, Any]:
        """In Chrome's format, as Perfetto shows it."""
        return chrome(self.schedule.ops, self.spans)


class Simulation:
    """A problem on its devices. Use as a context manager, or call `close`.

    steps: the largest step count the run can reach (receivers have room for so many); devices: 'auto' (all GPUs, or one
    virtual device for each processor), 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0'; options: None for what suits the
    devices; split: parts along each axis, or any partition; kernel: 'reference' for plain NumPy; cache: folder for
    compiled code (default: the user's cache folder); norm: on GPUs, a field the norm of whose change is computed for
    every step (see `norms`). The attribute `options` has those in use, `step` the steps done, `seconds` their time.
    Raises UsageError where an argument cannot mean anything, DoesNotFit where the devices have too little memory.
    """

    def __init__(
        self,
        problem: Problem,
        steps: int,
        *,
        devices: str | Devices = "auto",
        options: Options | Chosen | None = None,
        split: Index | Partition | None = None,
        kernel: KernelKind = "compiled",
        cache: Path | None = None,
        norm: str | None = None,
    ) -> None:
        if not hasattr(steps, "__index__") or steps < 0:
            raise UsageError(f"A run takes zero or more whole steps, got {steps}.")
        if not isinstance(options, Options | Chosen | None):
            raise UsageError(f"Options are given as peergrid.Options('overlap', depth=4), got {options!r}.")
        self.devices = devices if isinstance(devices, Devices) else parse_devices(str(devices))
        if options is None:
            options = suited(self.devices, problem, steps, split=split, cache=cache, norm=norm)
        chosen = options if isinstance(options, Chosen) else Chosen(options)
        self._asked, self._chosen = chosen.options, chosen.notes
        self.options = fitting(self._asked, self.devices, problem)
        self.problem = problem
        self.total_steps = steps
        self.partition = _partition(problem, self.devices, split, self.options, norm)
        self.layout = layout(problem, self.partition, self.options, NORM_ALIGN if norm else ())
        self.step = 0
        self.seconds = 0.0
        self._slot = 0
        self._closed = False
        self._exposed: float | None = None
        self._schedules: dict[tuple[int, int], Schedule] = {}
        self._executor = _executor(self.devices, self.layout, steps, kernel, cache, norm)
        try:
            for name, described in problem.fields.items():
                self._executor.load(name, described.first_values(), 0)
        except BaseException:
            self.close()
            raise

    def run(self, steps: int) -> None:
        """Advance by `steps` steps. Raises DeviceFault where a device fails, UsageError past the run's end."""
        self._check_left(steps)
        whole = self._period()
        started = time.perf_counter()
        times, rest = divmod(steps, whole.steps)
        self._execute(whole, times)
        if rest:
            self._execute(self._tail(rest), 1)
        self.seconds += time.perf_counter() - started

    def gather(self, name: str) -> Array:
        """The values of a state field now, shape of its box."""
        self._check_open()
        if name not in self.problem.state:
            raise UsageError(f"'{name}' is none of the fields that change: {', '.join(self.problem.state)}.")
        return self._executor.gather(name, self._slot)

    def traces(self) -> dict[str, Array]:
        """What each receiver recorded, one value per step done so far."""
        self._check_open()
        records = self._executor.traces()
        return {r.name: records[i, : self.step].copy() for i, r in enumerate(self.problem.receivers)}

    def norms(self) -> Array:
        """The norm of the field's change in each step done so far, in float64, the same bits on any devices.

        Raises UsageError where the run was made without.
        """
        if not hasattr(self._executor, "norms"):
            raise UsageError("No norm was asked for; name the field when the run is made.")
        found: Array = self._executor.norms(self.step)
        return found

    def check(self) -> None:
        """Raise Unstable, with step and place, where a state field is NaN or infinite."""
        for name in self.problem.state:
            place = self._executor.first_nonfinite(name, self._slot)
            if place is not None:
                raise Unstable(
                    f"Field '{name}' is not finite at cell {place} after step {self.step}; expected finite values: "
                    "use a smaller time step (Courant factor), or look at the materials and sources there."
                )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen by trial, and what was arranged otherwise than asked for, each with its reason."""
        shorter = self.options.block is not None and self._asked.block is None
        passes = f"One pass makes at most {self.options.block} steps of this problem here, not {self.options.depth}."
        apart = self._exposed is not None and self.devices.kind == "cuda" and self.options.strategy in FUSED
        return (
            self._chosen
            + ((passes,) if shorter else ())
            + ((APART.format(self.options.strategy),) if apart else ())
            + tuple(getattr(self._executor, "notes", ()))
        )

    def trace(self, steps: int) -> Timeline:
        """Advance by `steps` steps as `run` does, in one schedule, and take the time of every operation."""
        self._check_left(steps)
        schedule = build(self.layout, self.options, steps, self._slot)
        started = time.perf_counter()
        spans = self._executor.trace(schedule, self.step)
        self.seconds += time.perf_counter() - started
        self.step += steps
        self._slot = schedule.final
        self._exposed = exposed_communication(schedule.ops, spans)
        return Timeline(schedule, spans)

    def exposed_communication(self) -> float | None:
        """The share of the stepping time in which the busiest device computed nothing; None where it is not known.

        On GPUs it is that of the last `trace`, which alone measures there.
        """
        busy = self._executor.busy_seconds()
        if busy is None:
            return self._exposed
        if not self.seconds:
            return None
        return max(0.0, 1.0 - max(busy) / self.seconds)

    @property
    def host_seconds(self) -> float | None:
        """What issuing the work took of `seconds`; None where it is not known."""
        found: float | None = getattr(self._executor, "host_seconds", None)
        return found

    def sha256(self) -> str:
        """A digest of all state fields in global order: the same on any devices, under any strategy."""
        digest = hashlib.sha256()
        for name in self.problem.state:
            digest.update(name.encode())
            digest.update(self.gather(name).tobytes())
        return digest.hexdigest()

    def result(self) -> Result:
        """Everything a finished run leaves."""
        fields = {name: self.gather(name) for name in self.problem.state}
        cells = self.problem.grid.box.size
        return Result(fields, self.traces(), self.step, cells, self.seconds, self.sha256(), self.notes)

    def close(self) -> None:
        """Free the devices' memory; what was gathered before stays."""
        self._closed = True
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _check_left(self, steps: int) -> None:
        self._check_open()
        if not hasattr(steps, "__index__") or not 0 <= steps <= self.total_steps - self.step:
            raise UsageError(f"The run has {self.total_steps - self.step} steps left, asked for {steps}.")

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("The simulation is closed and its memory free; use it inside its 'with' block.")

    def _execute(self, schedule: Schedule, times: int) -> None:
        if times:
            self._executor.execute(schedule, times, self.step)
            self.step += times * schedule.steps
            self._slot = schedule.final

    def _period(self) -> Schedule:
        key = (0, self._slot)
        if key not in self._schedules:
            self._schedules[key] = period(self.layout, self.options, self._slot)
        return self._schedules[key]

    def _tail(self, steps: int) -> Schedule:
        key = (steps, self._slot)
        if key not in self._schedules:
            self._schedules[key] = build(self.layout, self.options, steps, self._slot)
        return self._schedules[key]


def run(
    step: Problem | Iterable[Stage | Update] | Stage | Update,
    steps: int,
    *,
    devices: str = "auto",
    options: Options | None = None,
    split: Index | Partition | None = None,
) -> Result:
    """Advance a step `steps` times on all devices and return the fields.

    step: updates and stages in order, or a `Problem` where there are receivers; devices, options, split: as in
    `Simulation`. Raises Unstable if a field becomes NaN or infinite, which is noticed within `CHECK_EVERY` steps,
    UsageError where an argument cannot mean anything, DoesNotFit where the devices have too little memory.
    """
    problem = step if isinstance(step, Problem) else Problem.of(step)
    with Simulation(problem, steps, devices=devices, options=options, split=split) as simulation:
        depth = simulation.options.depth
        often = (
            CHECK_EVERY // depth * depth or CHECK_EVERY
        )  # whole cycles where they fit, so that no exchange is wasted
        while simulation.step < steps:
            simulation.run(min(often, steps - simulation.step))
            simulation.check()
        return simulation.result()


def default_options(devices: Devices, problem: Problem, norm: str | None = None) -> Options:
    """The strategy and depth used unless the user chooses: on GPUs as many steps as one pass is worth."""
    if devices.kind == "cpu":
        return Options("async", depth=CPU_DEPTH)
    from peergrid.codegen.cuda.choose import steps_per_pass

    rows = problem.grid.shape[0] // devices.count
    return Options("overlap", depth=steps_per_pass(problem, most=max(1, rows // ROWS_PER_STEP), norm=norm))


def suited(
    devices: Devices,
    problem: Problem,
    steps: int,
    *,
    strategy: StrategyName | None = None,
    depth: int | None = None,
    order: Order | None = None,
    route: Route | None = None,
    split: Index | Partition | None = None,
    cache: Path | None = None,
    norm: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Chosen:
    """The options of a run of so many steps: what is named, and the rest as suits it.

    On GPUs a run that takes long enough is worth a trial, whose outcome is remembered in `cache`; `say` is told before
    it begins.
    """
    usual = default_options(devices, problem, norm)
    usual = replace(usual, order=order or usual.order, route=route)
    wished = replace(usual, strategy=strategy or usual.strategy, depth=depth or usual.depth)
    if devices.kind == "cpu" or (strategy and depth):
        return Chosen(wished)
    from peergrid.runtime.cpu.kernel import default_cache
    from peergrid.runtime.cuda.trial import Trial

    folder = (cache or default_cache()) / "cubin"
    cut = _partition(problem, devices, split, usual, norm)
    trial = Trial(problem, cut, devices.ordinals, steps, norm, folder, say=say)
    return trial.fastest(usual, strategy, depth) if trial.worthwhile else Chosen(wished)


def fitting(options: Options, devices: Devices, problem: Problem) -> Options:
    """The options with a number of steps per pass that the devices have a kernel for, unless one was asked for."""
    if devices.kind == "cpu" or options.block is not None:
        return options
    from peergrid.codegen.cuda.choose import block_of

    block = block_of(problem, options.depth)
    return options if block == options.depth else replace(options, block=block)


def _partition(
    problem: Problem, devices: Devices, split: Index | Partition | None, options: Options, norm: str | None
) -> Partition:
    """The split asked for; on GPUs unless one is asked for slabs along axis 0 that take equally long."""
    if split is None:
        if devices.kind == "cpu":
            return Partition.over(problem.grid, devices.count)
        from peergrid.codegen.cuda.balance import balanced

        return balanced(problem, devices.count, options.depth, norm)
    partition = split if isinstance(split, Partition) else Partition(problem.grid, _parts(split))
    if partition.devices != devices.count:
        raise UsageError(
            f"The split {'×'.join(map(str, partition.parts))} makes {partition.devices} parts for {devices.count} "
            "devices; give as many parts as devices."
        )
    return partition


def _parts(split: Index | int) -> Index:
    return tuple(split) if isinstance(split, Sequence) else (split,)


def _executor(
    devices: Devices, plan: Layout, steps: int, kernel: KernelKind, cache: Path | None, norm: str | None
) -> Executor:
    if devices.kind == "cuda":
        from peergrid.runtime.cpu.kernel import default_cache
        from peergrid.runtime.cuda.executor import CudaExecutor

        return CudaExecutor(plan, steps, devices.ordinals, cache=(cache or default_cache()) / "cubin", norm=norm)
    if norm is not None:
        raise UsageError("The norm of every step is computed on CUDA devices alone; use --devices cuda, or no norm.")
    check_host_memory(sum(plan.memory(device) for device in range(plan.devices)), plan.problem.grid.box.size)
    from peergrid.runtime.cpu.executor import ThreadedExecutor
    from peergrid.runtime.reference import ReferenceKernel

    if kernel == "reference":
        return ThreadedExecutor(plan, steps, ReferenceKernel(plan.problem))
    from peergrid.runtime.cpu.kernel import compile_kernel, default_cache

    compiled = compile_kernel(plan.problem, cache or default_cache())
    for device, length in product(range(plan.devices), sorted(set(plan.blocks))):
        compiled.prepare(plan.partition.owned(device), length)  # now, not in the first step
    return ThreadedExecutor(plan, steps, compiled)
