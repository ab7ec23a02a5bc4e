"""Passes of a custom kernel, which is no stencil, with the schedules and executors of stencils."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from peergrid.arguments import check_kind, check_steps
from peergrid.codegen.cache import default_cache
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.devices import Devices, devices_of
from peergrid.runtime.executor import Executor
from peergrid.runtime.executors import check_size
from peergrid.runtime.kernel import Kernel
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.launcher import abort_on_error, joins, own_devices
from peergrid.runtime.ranks.messages import MpiMail
from peergrid.runtime.ranks.ranks import Communicator, Ranks, devices_of_all
from peergrid.runtime.stepping import Stepping
from peergrid.schedule import Layout, Options, Schedule, build, layout
from peergrid.schedule.proved import require_right
from peergrid.stencil import Problem

if TYPE_CHECKING:
    from peergrid.runtime.cuda.device.driver import CudaDriver
    from peergrid.runtime.cuda.lowering.own_kernel import OwnKernel

IN_STREAMS = Options("async")


@dataclass(frozen=True)
class OwnKernels:
    """The same passes on virtual devices and on GPUs."""

    cpu: Kernel
    gpu: OwnKernel


@dataclass(frozen=True)
class Place:
    """The devices of a run, of all ranks; the ranks, if there are several; the driver of GPUs (None: the installed
    one).
    """

    devices: Devices
    ranks: Ranks | None = None
    driver: CudaDriver | None = None


def place_of(devices: str | Devices | Place, comm: Communicator | None, options: Options) -> Place:
    """The place of a run on these devices. Raises UsageError if they are not available."""
    check_kind("options", options, Options, "peergrid.Options, such as Options('async')")
    if isinstance(devices, Place):
        return devices
    if comm is None or not joins(comm):
        return Place(devices_of(devices))
    abort_on_error(comm)
    together, ranks = devices_of_all(comm, own_devices(devices, comm))
    return Place(together, ranks.by(options.route, together.kind))


class OwnKernelRun:
    """A run of passes: each reads one slot of the problem's fields and writes the other.

    problem: its updates state what a pass reads; their expressions are not evaluated, `kernels` make the passes, one
    step each. Raises UsageError for options with several steps between two exchanges.
    """

    def __init__(
        self, problem: Problem, kernels: OwnKernels, partition: Partition, options: Options, place: Place
    ) -> None:
        if options.depth != 1:
            raise UsageError(f"These passes make one step between two exchanges, got depth = {options.depth}.")
        self.layout: Layout = layout(problem, partition, options)
        self.step = 0
        check_size(place.devices, self.layout, place.ranks)
        self._options, self._schedules = options, dict[tuple[int, int], Schedule]()
        self._executor, self._closed = _executor(self.layout, kernels, place), False
        self._stepping = Stepping("run")

    @property
    def notes(self) -> tuple[str, ...]:
        """Requests that could not be met, each with its reason."""
        return tuple(self._executor.notes)

    def load(self, name: str, values: Array, slot: int) -> None:
        """Set a field everywhere, from its global array."""
        executor = self._open
        with self._stepping:
            executor.load(name, values, slot)

    def schedule(self, steps: int) -> Schedule:
        """The schedule of `passes` passes from here; repeated calls return the same object."""
        key = (steps, self.step % 2)
        if key not in self._schedules:
            self._schedules[key] = build(self.layout, self._options, *key)
        return self._schedules[key]

    def advance(self, steps: int) -> None:
        """Make passes, in pairs, by schedules that are proved first."""
        check_steps(steps)
        executor = self._open
        for count, times in ((2, steps // 2), (1, steps % 2)):
            if times:
                schedule = self.schedule(count)
                executor.prepare(schedule)
                require_right(self.layout, executor.carried_out(schedule))
                with self._stepping:
                    executor.execute(schedule, times, self.step)
                    self.step += count * times

    def gather(self, name: str, slot: int) -> Array:
        """The global array of a field in a slot."""
        return self._open.gather(name, slot)

    def close(self) -> None:
        """Release the devices."""
        self._closed = True
        self._executor.close()

    @property
    def _open(self) -> Executor:
        """The executor. Raises UsageError after `close`, and if the fields are those of no step."""
        if self._closed:
            raise UsageError("The run is closed and its memory freed; use it inside its 'with' block.")
        self._stepping.check()
        return self._executor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _executor(plan: Layout, kernels: OwnKernels, place: Place) -> Executor:
    """The executor of virtual devices or of GPUs, of one process or of several."""
    ranks, devices = place.ranks, place.devices
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.executor import CudaExecutor
        from peergrid.runtime.ranks.shared import RanksAsProcesses

        processes = None if ranks is None else RanksAsProcesses(ranks)
        folder = default_cache() / "cubin"
        found = CudaExecutor(
            plan, 0, devices.ordinals, cache=folder, driver=place.driver, processes=processes, own=kernels.gpu
        )
        return found if ranks is None else RankedExecutor(found, ranks, divides=True)
    if ranks is None:
        return ThreadedExecutor(plan, 0, kernels.cpu)
    mail = MpiMail(ranks, plan.problem.grid.dtype)
    return RankedExecutor(ThreadedExecutor(plan, 0, kernels.cpu, devices=ranks.mine, mail=mail), ranks)
