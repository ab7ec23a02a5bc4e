"""One run of a problem on some devices: memory, schedules, and the step count."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from peergrid.arguments import brief, check_flag, check_steps, is_one_of, is_whole, path_of
from peergrid.errors import Unstable, UsageError
from peergrid.grid import Array, Box, Index
from peergrid.grid.partition import Partition
from peergrid.placement import identity_of, place
from peergrid.result import Records, Result, State, Timeline, check_state, joined, other_version
from peergrid.runtime.devices import Devices
from peergrid.runtime.executor import Executor, Views
from peergrid.runtime.executors import KernelKind, executor_of
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.lead import LeadingExecutor, follow
from peergrid.runtime.ranks.ranks import Communicator
from peergrid.runtime.stepping import Stepping
from peergrid.schedule import Options, ResolvedOptions, Schedule, build
from peergrid.schedule.proved import require_right
from peergrid.schedule.schedules import Schedules
from peergrid.schedule.strategies import StrategyName
from peergrid.schedule.timeline import exposed_communication
from peergrid.stencil import Step, problem_of
from peergrid.stencil.lagged import kept_cells
from peergrid.stencil.reduction import NORM, Series
from peergrid.version import VERSION

SLAB = 1 << 24  # cells of a field that are gathered at once for its digest
CHECK_EVERY = 100  # steps between two checks for values that are not finite
FUSED = "'{}' fuses the halo exchange into its kernels, which cannot be timed operation by operation"
UNTIMED: dict[StrategyName, str] = {
    "graph": "The operations of a CUDA graph cannot be timed one by one",
    "peer": FUSED,
    "persistent": FUSED,
}
APART = "the timeline and the exposed communication come from the unfused schedule."


class Simulation:
    """A run of a problem on some devices. Use it as a context manager, or call `close` at the end.

    problem: a `Problem`, or updates and stages in order; steps: the most steps that the run can make (receivers have
    memory for so many); devices: 'auto' (all GPUs, or one virtual device per processor), 'cpu:4', 'cuda', 'cuda:0,1' or
    'cuda:0,0'; options: None to choose them for the devices; split: parts along each axis, or a partition;
    kernel: 'reference' for plain NumPy; cache: folder for compiled code (default: the user's cache folder); norm: a
    field; the norm of its change is computed in every step (see `norms`); sources: folder for the CUDA C++ of the
    kernels, for profilers to show; comm: an MPI communicator (`mpi4py.MPI.COMM_WORLD`). Each of its ranks makes the
    same simulation, on devices of its own; together they compute one grid. All ranks make the same calls in the same
    order, and get the same results.
    Attributes: `options` are those in use, `step` the steps done, `seconds` their time.
    Threads may share a simulation: a call waits until earlier ones are done.
    Raises UsageError for arguments that are not valid, DoesNotFit if the devices have too little memory.
    """

    def __init__(
        self,
        problem: Step,
        steps: int,
        *,
        devices: str | Devices = "auto",
        options: Options | ResolvedOptions | None = None,
        split: Index | Partition | None = None,
        kernel: KernelKind = "compiled",
        cache: Path | str | None = None,
        norm: str | None = None,
        sources: Path | str | None = None,
        comm: Communicator | None = None,
    ) -> None:
        _check(steps, options)
        self.problem, self.total_steps, self._norm = problem_of(problem), steps, norm
        cache = None if cache is None else path_of("cache", cache)
        placement = place(self.problem, steps, devices, options, split=split, norm=norm, cache=cache, comm=comm)
        self._placement, self._ranks = placement, placement.ranks
        self.devices, self.options, self.layout = placement.devices, placement.options, placement.layout
        self.partition = self.layout.partition
        self.step = 0
        self.seconds = 0.0
        self._slot = 0
        self._restored: State | None = None  # without fields
        self._coefficients: dict[str, Array] = {}  # those that were changed
        self._lock = threading.RLock()
        self._closed, self._stepping = False, Stepping("simulation")
        self._process = os.getpid()
        self._exposed: float | None = None
        self._schedules = Schedules(self.layout, self.options)
        if self._ranks is not None:
            self._ranks.same("the kernel", kernel)
        folder = None if sources is None else path_of("sources", sources)
        self._use(executor_of(self.devices, self.layout, steps, kernel, cache, placement.norm, folder, self._ranks))
        self._begin()

    def __repr__(self) -> str:
        return f"Simulation of {self.problem!r} on {self.devices}: step {self.step} of {self.total_steps}"

    @property
    def comm(self) -> Communicator | None:
        """The communicator of the processes that share the grid; None for a single process."""
        return None if self._ranks is None else self._ranks.comm

    @property
    def ranks(self) -> int:
        """The number of processes that share the grid."""
        return 1 if self._ranks is None else self._ranks.comm.size

    def lead(self) -> None:
        """On rank 0: from here on make each call for all ranks, while the others are in `follow`."""
        if self._ranks is not None:
            assert isinstance(self._executor, RankedExecutor)
            self._release.detach()
            self._use(LeadingExecutor(self._executor, self._ranks))

    def follow(self) -> None:
        """On other ranks: repeat the calls of rank 0 until it closes its simulation; see `lead`."""
        assert self._ranks is not None
        assert isinstance(self._executor, RankedExecutor)
        self._closed = True
        self._release.detach()
        follow(self._executor, self._ranks)

    def run(self, steps: int) -> None:
        """Advance by `steps` steps. The schedules are proved correct first.

        Raises DeviceFault if a device fails, CheckFailed if a proof fails, UsageError beyond the run's last step.
        """
        with self._open():
            self._check_left(steps)
            if self._ranks is not None and isinstance(self._executor, RankedExecutor):  # one that leads has no others
                self._ranks.same("a count of steps", (self.step, steps))
            parts = self._schedules.through(steps, self.step, self._slot)
            self._executor.expect([schedule for schedule, _ in parts])
            for schedule, _ in parts:
                self._executor.prepare(schedule)
                require_right(self.layout, self._executor.carried_out(schedule))
            started = time.perf_counter()
            with self._stepping:
                for schedule, count in parts:
                    self._execute(schedule, count)
            self.seconds += time.perf_counter() - started

    def gather(self, name: str, box: Box | None = None) -> Array:
        """A copy of the present values of a state field, on its box or on a part of it; shape: that of the box."""
        self._check_state_field(name)
        whole = self.problem.fields[name].box
        if box is not None and not (
            isinstance(box, Box) and box.lies_in(whole.ndim) and whole.covers(box) and not box.empty
        ):
            got = box if isinstance(box, Box) else brief(box)
            raise UsageError(f"A box within {whole} is expected for '{name}', got {got}.")
        with self._open():
            return self._executor.gather(name, self._slot, box)

    def own_parts(self, name: str) -> tuple[tuple[Box, Array], ...]:
        """The values of a state field on the devices of this process, as pairs of a box and an array of its shape."""
        self._check_state_field(name)
        whole = self.problem.fields[name].box
        with self._open():
            mine = range(self.partition.devices) if self._ranks is None else self._ranks.mine
            boxes = [box for device in mine if not (box := self.partition.owned(device) & whole).empty]
            if self._ranks is None:
                return tuple((box, self._executor.gather(name, self._slot, box)) for box in boxes)
            assert isinstance(self._executor, RankedExecutor | LeadingExecutor)
            return tuple((box, self._executor.gather_own(name, self._slot, box)) for box in boxes)

    def views(self, name: str) -> Views:
        """The memory of a state field on each device of this process: pairs of a box and an array of its shape.

        Nothing is copied. Virtual devices give NumPy arrays; GPUs give objects with a `__cuda_array_interface__`, which
        CuPy (`cupy.asarray`), PyTorch (`torch.as_tensor`) and Numba accept. Read them only, and only until the next
        step, `set`, `restore` or `close`.
        """
        self._check_state_field(name)
        with self._open():
            return self._executor.views(name, self._slot)

    def set(self, name: str, values: ArrayLike) -> None:
        """Replace the values of a field or profile by a number, or by an array of its shape.

        Raises UsageError for other values. Of a field with `prev`, cells that no update writes keep their values:
        raises UsageError if the new ones differ there.
        """
        if not is_one_of(name, self.problem.fields):
            fixed = {
                *self.problem.signals,
                *self.problem.tables,
                *(key.partition("=")[0] for key in self.problem.params),
            }
            way = ", whose values are fixed; make it a profile or a field" if is_one_of(name, fixed) else ""
            raise UsageError(f"A field is one of {', '.join(self.problem.fields)}, got {brief(name)}{way}.")
        described = self.problem.fields[name]
        given = described.with_values(values).first_values()
        with self._open():
            for box in kept_cells(self.problem, name):
                if self.gather(name, box).tobytes() != given[box.slices(described.box.lo)].tobytes():
                    raise UsageError(
                        f"'{name}' is expected to keep its values in {box}, which no update writes, got others there; "
                        "take these values from gather."
                    )
            with self._stepping:
                self._executor.load(name, given, self._slot)
            if name not in self.problem.state:
                self._coefficients[name] = given

    def traces(self) -> dict[str, Array]:
        """The record of each receiver, shape (steps done,): entry k is the value after step k + 1."""
        with self._open():
            records = self._executor.traces()
            found = {r.name: records[i, : self.step].copy() for i, r in enumerate(self.problem.receivers)}
            if self._restored is not None:
                for name, values in self._restored.records.traces.items():
                    found[name][: len(values)] = values
            return found

    def norms(self) -> Array:
        """The L2 norm of the field's change in each step, float64, shape (steps done,); the same bits on any devices.

        Raises UsageError if the simulation was made without `norm`.
        """
        with (
            self._open(),
            np.errstate(all="ignore"),
        ):  # values before a restored step are arbitrary
            if self._norm is None or self._placement.norm is not None:
                found = self._executor.norms(self.step)
            else:
                found = self._executor.reductions(self.step)[NORM].values.copy()
            earlier = None if self._restored is None else self._restored.records.norms
            if earlier is not None:
                found[: len(earlier)] = earlier
            return found

    def reductions(self) -> Mapping[str, Series]:
        """The results of the problem's reductions so far, by name; the same bits on any devices."""
        with self._open(), np.errstate(all="ignore"):
            all_found = self._executor.reductions(self.step)
            found = {one.name: all_found[one.name] for one in self.problem.reductions}
            if self._restored is not None:
                earlier = self._restored.records.reductions
                found = {name: joined(earlier[name], later) for name, later in found.items()}
            return found

    def state(self) -> State:
        """A copy of everything that another run needs to continue from here; see `restore`."""
        with self._open():
            fields = {name: self.gather(name) for name in self.problem.state} | self._coefficients
            norms = None if self._norm is None else self.norms()
            records = Records(self.traces(), norms, self.reductions())
            return State(self.step, fields, records, self.seconds, self._identity, VERSION)

    def restore(self, state: State) -> None:
        """Continue from the state of a run of the same problem, made with any devices and options: the same bits.

        Raises UsageError for the state of another problem, or of a step beyond the run's last.
        """
        with self._open():
            check_state(state, self._identity, self.total_steps)
            with self._stepping:
                given = {name: values for name, values in state.fields.items() if name not in self.problem.state}
                first = {name: self.problem.fields[name].first_values() for name in self._coefficients.keys() - given}
                for name, values in {**state.fields, **first}.items():
                    self._executor.load(name, values, 0)
                self._coefficients = given
            self.step, self.seconds, self._slot = state.step, state.seconds, 0
            self._restored = replace(state, fields={})

    def check(self) -> None:
        """Raise Unstable, with step and cell, if a state field has a value that is NaN or infinite."""
        with self._open():
            for name in self.problem.state:
                place = self._executor.first_nonfinite(name, self._slot)
                if place is not None:
                    raise Unstable(
                        f"Field '{name}' is not finite at cell {place} after step {self.step}; expected finite values: "
                        "use a smaller time step, or look at first values, coefficients and sources there."
                    )

    @property
    def _identity(self) -> Mapping[str, str]:
        return identity_of(self.problem, self._norm)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the options that were chosen by trial, and on requests that could not be met, with reasons."""
        return (
            *self._placement.notes,
            *(() if self._restored is None else other_version(self._restored)),
            *self._untimed(),
            *self._executor.notes,
        )

    def trace(self, steps: int) -> Timeline:
        """Advance by `steps` steps in one schedule, and measure the time of every operation."""
        with self._open():
            self._check_left(steps)
            schedule = build(self.layout, self.options, steps, self._slot, self.step)
            with self._stepping:
                spans = self._executor.trace(schedule, self.step)
            self.seconds += max((span.end for span in spans), default=0.0)
            self.step += steps
            self._slot = schedule.final
            self._exposed = exposed_communication(schedule.ops, spans)
            return Timeline(schedule, spans)

    def exposed_communication(self) -> float | None:
        """The share of the stepping time in which the busiest device computed nothing; None if unknown.

        On GPUs only `trace` measures it: the value is that of the last one.
        """
        busy = self._executor.busy_seconds()
        if busy is None:
            return self._exposed
        if not self.seconds:
            return None
        return max(0.0, 1.0 - max(busy) / self.seconds)

    @property
    def host_seconds(self) -> float | None:
        """The part of `seconds` in which the host issued work to GPUs; None if unknown."""
        return self._executor.host_seconds

    def sha256(self) -> str:
        """SHA-256 of all state fields in the order of the grid: the same on any devices, under any strategy.

        NaN counts as one value: which of its bits an operation leaves depends on the processor and the compiler.
        """
        digest = hashlib.sha256()
        with self._open():
            for name in self.problem.state:
                digest.update(name.encode())
                for slab in self.problem.fields[name].box.slabs(SLAB):
                    values = self.gather(name, slab)
                    values[np.isnan(values)] = np.nan
                    digest.update(values.data)
        return digest.hexdigest()

    def result(self) -> Result:
        """The fields, records and figures of the run so far."""
        cells = self.problem.grid.box.size
        with self._open():
            fields = {name: self.gather(name) for name in self.problem.state}
            norms = None if self._norm is None else self.norms()
            found = fields, self.traces(), self.step, cells, self.seconds, self.sha256(), self.notes, norms
            return Result(*found, self.reductions())

    def close(self) -> None:
        """Free the memory of the devices; arrays gathered before stay valid. No effect in a forked process."""
        if os.getpid() != self._process:
            self._release.detach()
            return
        with self._lock:
            self._closed = True
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _use(self, executor: Executor) -> None:
        """Compute by an executor, which is closed with the simulation."""
        self._executor = executor
        self._release = weakref.finalize(self, executor.close)
        self._release.atexit = False

    def _begin(self) -> None:
        """Load the first values of the fields while kernels are compiled; if that fails, the
        devices are given back.
        """
        try:
            whole = self._schedules.through(self.total_steps, self.step, self._slot)
            self._executor.expect([schedule for schedule, _ in whole])
            for name, described in self.problem.fields.items():
                self._executor.load(name, described.values if described.made_by else described.first_values(), 0)
        except BaseException:
            self.close()
            raise

    def _untimed(self) -> tuple[str, ...]:
        """A note on operations that GPUs cannot time, after a `trace`."""
        strategy = self.options.strategy
        if self._exposed is None or self.devices.kind == "cpu" or strategy not in UNTIMED:
            return ()
        return (f"{UNTIMED[strategy].format(strategy)}; {APART}",)

    def _check_state_field(self, name: str) -> None:
        if not is_one_of(name, self.problem.state):
            raise UsageError(f"A state field is one of {', '.join(self.problem.state)}, got {brief(name)}.")

    def _check_left(self, steps: int) -> None:
        if not is_whole(steps) or not 0 <= steps <= self.total_steps - self.step:
            raise UsageError(
                f"The run takes whole steps and has {self.total_steps - self.step} left, got {brief(steps)}."
            )

    @contextmanager
    def _open(self) -> Iterator[None]:
        """The lock of the simulation. Raises UsageError if the devices do not hold the fields of one step."""
        if os.getpid() != self._process:
            raise UsageError("A simulation works only in the process that made it; make a new one in this process.")
        with self._lock:
            if self._closed:
                raise UsageError("The simulation is closed and its memory freed; use it inside its 'with' block.")
            self._stepping.check()
            yield

    def _execute(self, schedule: Schedule, times: int) -> None:
        self._executor.execute(schedule, times, self.step)
        self.step += times * schedule.steps
        self._slot = schedule.final


def run(
    step: Step,
    steps: int,
    *,
    devices: str | Devices = "auto",
    options: Options | None = None,
    split: Index | Partition | None = None,
    norm: str | None = None,
    comm: Communicator | None = None,
    every: int = 0,
    call: Callable[[Simulation], object] | None = None,
    progress: bool = False,
) -> Result:
    """Make `steps` steps of a problem on some devices and return its fields.

    step: updates and stages in order, or a `Problem` if there are receivers or reductions; devices, options, split,
    norm, comm: as in `Simulation`; call: a function that is called with the simulation every `every` steps, to inspect,
    write or change it; progress: show a progress bar on standard error, or lines where that is no terminal.
    Raises Unstable if a field becomes NaN or infinite (noticed within `CHECK_EVERY` steps), UsageError for arguments
    that are not valid, DoesNotFit if the devices have too little memory.
    """
    check_flag("progress", progress)
    if not is_whole(every) or every < 0 or (call is None) != (every == 0) or not (call is None or callable(call)):
        raise UsageError(
            "A run takes 'every' and 'call' together, such as every=100, call=print, "
            f"got every={brief(every)} and call={brief(call)}."
        )
    with Simulation(step, steps, devices=devices, options=options, split=split, norm=norm, comm=comm) as simulation:
        depth = simulation.options.depth
        often = CHECK_EVERY // depth * depth or CHECK_EVERY  # whole exchange intervals, where they fit
        with _reporter(simulation, progress) as report:
            while simulation.step < steps:
                due = simulation.step // every * every + every if every else steps
                simulation.run(min(often, due - simulation.step, steps - simulation.step))
                simulation.check()
                report(simulation.step)
                if call is not None and simulation.step == due:
                    call(simulation)
        return simulation.result()


@contextmanager
def _reporter(simulation: Simulation, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that shows the number of steps done."""
    if not wanted:
        yield lambda step: None
        return
    from peergrid.progress import Reporter  # imports rich

    with Reporter(simulation.total_steps, simulation.problem.grid.box.size, quiet=False) as reporter:
        yield reporter.update


def _check(steps: int, options: object) -> None:
    check_steps(steps)
    if not isinstance(options, Options | ResolvedOptions | None):
        raise UsageError(f"Options are given as peergrid.Options('overlap', depth=4), got {brief(options)}.")
