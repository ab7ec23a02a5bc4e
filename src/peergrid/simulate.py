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
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from peergrid.errors import Unstable, UsageError
from peergrid.grid import Array, Box, Index
from peergrid.grid.partition import Partition
from peergrid.resolve import layout_of, norm_in_passes, partition_of, resolve_options, with_supported_block
from peergrid.result import Records, Result, State, Timeline, check_state, joined, other_version
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.runtime.executor import Executor, Views
from peergrid.runtime.executors import KernelKind, executor_of
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.launcher import abort_on_error, own_devices
from peergrid.runtime.ranks.lead import LeadingExecutor, follow
from peergrid.runtime.ranks.ranks import Communicator, Ranks, devices_of_all
from peergrid.schedule import Options, ResolvedOptions, Schedule, build
from peergrid.schedule.build import is_whole
from peergrid.schedule.proved import require_right
from peergrid.schedule.schedules import Schedules
from peergrid.schedule.strategies import StrategyName
from peergrid.schedule.timeline import exposed_communication
from peergrid.stencil import Step, problem_of
from peergrid.stencil.identity import identity
from peergrid.stencil.lagged import kept_by_lag
from peergrid.stencil.reduction import NORM, Series
from peergrid.version import VERSION

SLAB = 1 << 24  # cells of a field that are gathered at once for its digest
CHECK_EVERY = 100  # steps between two looks for values that are not finite
FUSED = "The kernels of '{}' exchange by themselves where they can, and no clock looks into them"
HIDDEN: dict[StrategyName, str] = {"graph": "No clock looks into graphs", "peer": FUSED, "persistent": FUSED}
APART = "the timeline and the exposed communication are those of the same operations carried out one by one."


class Simulation:
    """A problem on its devices. Use as a context manager, or call `close`; what is forgotten open is closed with it.

    problem: a `Problem`, or updates and stages in order; steps: the largest step count the run can reach (receivers
    have room for so many); devices: 'auto' (all GPUs, or one virtual device for each processor), 'cpu:4', 'cuda',
    'cuda:0,1' or 'cuda:0,0'; options: None for what suits the devices; split: parts along each axis, or any partition;
    kernel: 'reference' for plain NumPy; cache: folder for compiled code (default: the user's cache folder); norm: a
    field the norm of whose change is computed for every step (see `norms`); sources: folder for the CUDA C++ of the
    kernels, whose lines profilers then show; comm: an MPI communicator (`mpi4py.MPI.COMM_WORLD`) whose ranks each make
    the same simulation with devices of their own: they work on one grid, every call is made by all of them in the same
    order, and has the same answer everywhere.
    The attribute `options` has those in use, `step` the steps done, `seconds` their time.
    Threads may share a simulation: each call waits until those before it are done.
    Raises UsageError where an argument cannot mean anything, DoesNotFit where the devices have too little memory.
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
        problem = problem_of(problem)
        cache = None if cache is None else Path(cache)
        self.problem, self.total_steps = problem, steps
        self._norm = norm
        self._ranks: Ranks | None = None
        if comm is None or comm.size < 2:
            self.devices = devices if isinstance(devices, Devices) else parse_devices(str(devices))
        else:
            abort_on_error(comm)
            own = devices if isinstance(devices, Devices) else own_devices(str(devices), comm)
            self.devices, self._ranks = devices_of_all(comm, own)
            self._ranks.same("the version", VERSION)
            self._ranks.same("the problem", tuple(sorted(self._identity.items())))
            self._ranks.same("a count of steps or an option", f"{steps} {options} {split}")
        self._norm_reduced = norm is not None and not norm_in_passes(problem, norm)
        if norm is not None and self._norm_reduced:
            problem, norm = problem.with_norm(norm), None
        resolve = partial(resolve_options, self.devices, problem, steps, split=split, cache=cache, norm=norm)
        resolved = options or (resolve() if self._ranks is None else self._ranks.decided(resolve))
        self._chosen = resolved if isinstance(resolved, ResolvedOptions) else ResolvedOptions(resolved)
        self.options = with_supported_block(self._chosen.options, self.devices, problem, norm)
        if self._ranks is not None:
            self._ranks = self._ranks.by(self.options.route, self.devices.kind)
        elif self.options.within != self.options.route:
            raise UsageError(f"The route '{self.options.route}' is one between ranks, and a launcher started none.")
        boxes = self._chosen.split if split is None else split
        self.partition = partition_of(problem, self.devices, self.options, boxes, norm)
        self.layout = layout_of(problem, self.devices, self.options, self.partition, norm)
        self.step = 0
        self.seconds = 0.0
        self._slot = 0
        self._restored: State | None = None  # without fields
        self._coefficients: dict[str, Array] = {}  # those that were given other values
        self._lock = threading.RLock()
        self._closed = self._torn = False
        self._process = os.getpid()
        self._exposed: float | None = None
        self._schedules = Schedules(self.layout, self.options)
        self._executor: Executor = executor_of(
            self.devices,
            self.layout,
            steps,
            kernel,
            cache,
            norm,
            None if sources is None else Path(sources),
            self._ranks,
        )
        self._release = weakref.finalize(self, self._executor.close)
        self._release.atexit = False
        self._begin()

    def __repr__(self) -> str:
        return f"Simulation of {self.problem!r} on {self.devices}: step {self.step} of {self.total_steps}"

    @property
    def comm(self) -> Communicator | None:
        """The communicator of the processes that share the grid; None for one alone."""
        return None if self._ranks is None else self._ranks.comm

    @property
    def ranks(self) -> int:
        """The processes that share the grid."""
        return 1 if self._ranks is None else self._ranks.comm.size

    def lead(self) -> None:
        """On rank 0: from here on decide for all ranks, which `follow`."""
        if self._ranks is not None:
            assert isinstance(self._executor, RankedExecutor)
            self._release.detach()
            self._executor = LeadingExecutor(self._executor, self._ranks)
            self._release = weakref.finalize(self, self._executor.close)
            self._release.atexit = False

    def follow(self) -> None:
        """On other ranks: do what rank 0 does, until it closes its simulation."""
        assert self._ranks is not None
        assert isinstance(self._executor, RankedExecutor)
        self._closed = True
        self._release.detach()
        follow(self._executor, self._ranks)

    def run(self, steps: int) -> None:
        """Advance by `steps` steps, by schedules that are proved right before.

        Raises DeviceFault where a device fails, CheckFailed where no proof is found, UsageError past the run's end.
        """
        with self._open():
            self._check_left(steps)
            parts = self._schedules.through(steps, self.step, self._slot)
            self._executor.expect([schedule for schedule, _ in parts])
            for schedule, _ in parts:
                self._executor.prepare(schedule)
                require_right(self.layout, self._executor.carried_out(schedule))
            started = time.perf_counter()
            with self._stepping():
                for schedule, count in parts:
                    self._execute(schedule, count)
            self.seconds += time.perf_counter() - started

    def gather(self, name: str, box: Box | None = None) -> Array:
        """The values of a state field now, shape of its box; or on a box within that alone."""
        self._check_state_field(name)
        if box is not None and (box.empty or not self.problem.fields[name].box.covers(box)):
            raise UsageError(f"A box within {self.problem.fields[name].box} is expected for '{name}', got {box}.")
        with self._open():
            return self._executor.gather(name, self._slot, box)

    def own_parts(self, name: str) -> tuple[tuple[Box, Array], ...]:
        """The values of a state field on the cells of this process's devices, box by box: all cells, without ranks."""
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
        """The values of a state field where they lie: of each device of this process its box, and an array of that.

        Nothing is copied. The arrays are NumPy's, or of GPUs have a `__cuda_array_interface__`, which CuPy
        (`cupy.asarray`), PyTorch (`torch.as_tensor`) and Numba take. They are good until the next step, `set`,
        `restore` or `close`, and not to be written to.
        """
        self._check_state_field(name)
        with self._open():
            return self._executor.views(name, self._slot)

    def set(self, name: str, values: ArrayLike) -> None:
        """Give a field or profile other values from here on: a number, or an array of its shape; others stay.

        Raises UsageError where they are no such values, and where they differ from the present ones on cells that no
        update writes, of a field that has `prev` or is one.
        """
        if name not in self.problem.fields:
            raise UsageError(f"'{name}' is none of the fields: {', '.join(self.problem.fields)}.")
        described = self.problem.fields[name]
        given = described.with_values(values).first_values()
        with self._open():
            for box in kept_by_lag(self.problem, name):
                if not np.array_equal(self.gather(name, box), given[box.slices(described.box.lo)]):
                    raise UsageError(
                        f"'{name}' keeps its values in {box}, which no update writes: there the value one step before "
                        "is the same. Set the present values there, from gather."
                    )
            with self._stepping():
                self._executor.load(name, given, self._slot)
            if name not in self.problem.state:
                self._coefficients[name] = given

    def traces(self) -> dict[str, Array]:
        """The record of each receiver, one value per step done so far: entry k is the value after step k + 1."""
        with self._open():
            records = self._executor.traces()
            found = {r.name: records[i, : self.step].copy() for i, r in enumerate(self.problem.receivers)}
            if self._restored is not None:
                for name, values in self._restored.records.traces.items():
                    found[name][: len(values)] = values
            return found

    def norms(self) -> Array:
        """The L2 norm of the field's change in each step done so far, in float64, the same bits on any devices.

        Raises UsageError where the run was made without.
        """
        with self._open(), np.errstate(all="ignore"):  # what devices hold of steps before a restored one is anything
            if self._norm_reduced:
                found: Array = self._executor.reductions(self.step)[NORM].values.copy()
            else:
                found = self._executor.norms(self.step)
            earlier = None if self._restored is None else self._restored.records.norms
            if earlier is not None:
                found[: len(earlier)] = earlier
            return found

    def reductions(self) -> Mapping[str, Series]:
        """The results of the problem's reductions in the steps done so far, the same bits on any devices."""
        with self._open(), np.errstate(all="ignore"):
            all_found = self._executor.reductions(self.step)
            found = {one.name: all_found[one.name] for one in self.problem.reductions}
            if self._restored is not None:
                earlier = self._restored.records.reductions
                found = {name: joined(earlier[name], later) for name, later in found.items()}
            return MappingProxyType(found)

    def state(self) -> State:
        """Everything that the run needs to go on from here, see `restore`; a copy of its own."""
        with self._open():
            fields = {name: self.gather(name) for name in self.problem.state} | self._coefficients
            norms = None if self._norm is None else self.norms()
            records = Records(self.traces(), norms, self.reductions())
            return State(self.step, fields, records, self.seconds, self._identity, VERSION)

    def restore(self, state: State) -> None:
        """Go on from the state of a run of the same problem, on whatever devices and however arranged: the same bits.

        Raises UsageError where it is the state of another problem, or beyond the run's last step.
        """
        with self._open():
            check_state(state, self._identity, self.total_steps)
            with self._stepping():
                given = {name: values for name, values in state.fields.items() if name not in self.problem.state}
                first = {name: self.problem.fields[name].first_values() for name in self._coefficients.keys() - given}
                for name, values in {**state.fields, **first}.items():
                    self._executor.load(name, values, 0)
                self._coefficients = given
            self.step, self.seconds, self._slot = state.step, state.seconds, 0
            self._restored = replace(state, fields={})

    def check(self) -> None:
        """Raise Unstable, with step and place, where a state field is NaN or infinite."""
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
        return {**identity(self.problem), "the norm asked for": self._norm or ""}

    @property
    def notes(self) -> tuple[str, ...]:
        """Options chosen by trial, and requests that could not be met, each with its reason."""
        shorter = self.options.block is not None and self._chosen.options.block is None
        most = "one step" if self.options.block == 1 else f"{self.options.block} steps"
        passes = f"One pass makes at most {most} of this problem here, not {self.options.depth}."
        strategy, timed = self.options.strategy, self._exposed is not None and self.devices.kind == "cuda"
        apart = f"{HIDDEN[strategy].format(strategy)}: {APART}" if timed and strategy in HIDDEN else ""
        return (
            self._chosen.notes
            + (() if self._restored is None else other_version(self._restored))
            + ((passes,) if shorter else ())
            + ((apart,) if apart else ())
            + tuple(self._executor.notes)
        )

    def trace(self, steps: int) -> Timeline:
        """Advance by `steps` steps as `run` does, in one schedule, and take the time of every operation."""
        with self._open():
            self._check_left(steps)
            schedule = build(self.layout, self.options, steps, self._slot, self.step)
            with self._stepping():
                spans = self._executor.trace(schedule, self.step)
            self.seconds += max((span.end for span in spans), default=0.0)
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
        """The part of `seconds` that issuing the work took; None where it is not known."""
        return self._executor.host_seconds

    def sha256(self) -> str:
        """A digest of all state fields in global order: the same on any devices, under any strategy."""
        digest = hashlib.sha256()
        with self._open():
            for name in self.problem.state:
                digest.update(name.encode())
                for slab in self.problem.fields[name].box.slabs(SLAB):
                    digest.update(self.gather(name, slab).data)
        return digest.hexdigest()

    def result(self) -> Result:
        """The result of a finished run."""
        cells = self.problem.grid.box.size
        with self._open():
            fields = {name: self.gather(name) for name in self.problem.state}
            norms = None if self._norm is None else self.norms()
            found = fields, self.traces(), self.step, cells, self.seconds, self.sha256(), self.notes, norms
            return Result(*found, self.reductions())

    def close(self) -> None:
        """Free the devices' memory; what was gathered before stays. A copy in a forked process has none to free."""
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

    def _begin(self) -> None:
        """The fields' first values, into the devices, while the run's kernels are compiled; where that fails, the
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

    def _check_state_field(self, name: str) -> None:
        if name not in self.problem.state:
            raise UsageError(f"'{name}' is none of the fields that change: {', '.join(self.problem.state)}.")

    def _check_left(self, steps: int) -> None:
        if not is_whole(steps) or not 0 <= steps <= self.total_steps - self.step:
            raise UsageError(f"The run takes whole steps and has {self.total_steps - self.step} left, got {steps!r}.")

    @contextmanager
    def _open(self) -> Iterator[None]:
        """The lock of the simulation, with devices that hold the fields of a step."""
        if os.getpid() != self._process:
            raise UsageError("The simulation belongs to the process that made it; make one of its own in this one.")
        with self._lock:
            if self._closed:
                raise UsageError("The simulation is closed and its memory free; use it inside its 'with' block.")
            if self._torn:
                raise UsageError("The simulation failed or was interrupted within its steps; make it anew.")
            yield

    @contextmanager
    def _stepping(self) -> Iterator[None]:
        """Whoever is cut off within leaves fields of no step."""
        self._torn = True
        yield
        self._torn = False

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
    """Advance a step `steps` times on all devices and return the fields.

    step: updates and stages in order, or a `Problem` where there are receivers; devices, options, split, norm, comm: as
    in `Simulation`; the result has the norms; call: is given the simulation after every so many steps (`every`), to
    look at it, write or change it; progress: a bar, or lines now and then, on standard error. Raises Unstable if a
    field becomes NaN or infinite, which is noticed within `CHECK_EVERY` steps, UsageError where an argument cannot mean
    anything, DoesNotFit where the devices have too little memory.
    """
    if (call is None) != (every == 0) or not is_whole(every) or every < 0 or not (call is None or callable(call)):
        raise UsageError(
            "A run takes 'every' and 'call' together, such as every=100, call=print, "
            f"got every={every!r} and call={call!r}."
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
    """A function that is told of steps as they are done."""
    if not wanted:
        yield lambda step: None
        return
    from peergrid.progress import Reporter  # takes rich along

    with Reporter(simulation.total_steps, simulation.problem.grid.box.size, quiet=False) as reporter:
        yield reporter.update


def _check(steps: int, options: object) -> None:
    if not is_whole(steps) or steps < 0:
        raise UsageError(f"A run takes zero or more whole steps, got {steps!r}.")
    if not isinstance(options, Options | ResolvedOptions | None):
        raise UsageError(f"Options are given as peergrid.Options('overlap', depth=4), got {options!r}.")
