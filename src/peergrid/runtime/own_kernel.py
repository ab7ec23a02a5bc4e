"""Passes of a kernel that is no stencil, by the schedules and the executors that serve stencils on virtual devices."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.runtime.executor import Executor
from peergrid.runtime.kernel import Kernel
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.messages import MpiMail
from peergrid.runtime.ranks.ranks import Communicator, Ranks, devices_of_all
from peergrid.schedule import Layout, Options, Schedule, build, layout
from peergrid.schedule.proved import require_right
from peergrid.stencil import Problem

IN_STREAMS = Options("async")


def all_devices(devices: str | Devices, comm: Communicator | None) -> tuple[Devices, Ranks | None]:
    """The virtual devices of a run, of all ranks if there are several. Raises UsageError for GPUs."""
    chosen = devices if isinstance(devices, Devices) else parse_devices(devices)
    if chosen.kind == "cuda":
        raise UsageError(f"Virtual devices such as 'cpu:4' are expected here, got {chosen}.")
    return devices_of_all(comm, chosen) if comm is not None and comm.size > 1 else (chosen, None)


class OwnKernelRun:
    """A run of passes: each reads one slot of the problem's fields and writes the other.

    problem: its updates state what a pass reads; their expressions are not evaluated, `kernel` makes the passes, one
    step each. ranks: the processes that share the partition.
    """

    def __init__(
        self, problem: Problem, kernel: Kernel, partition: Partition, options: Options, ranks: Ranks | None = None
    ) -> None:
        self.layout: Layout = layout(problem, partition, options)
        self.step = 0
        self._options = options
        self._executor = _executor(self.layout, kernel, ranks)

    def load(self, name: str, values: Array, slot: int) -> None:
        """Set a field everywhere, from its global array."""
        self._executor.load(name, values, slot)

    def schedule(self, steps: int) -> Schedule:
        """The operations of so many passes from here."""
        return build(self.layout, self._options, steps, self.step % 2)

    def advance(self, steps: int) -> None:
        """Make passes, two and two together, by schedules that are proved before."""
        for count, times in ((2, steps // 2), (1, steps % 2)):
            if times:
                schedule = self.schedule(count)
                self._executor.prepare(schedule)
                require_right(self.layout, self._executor.carried_out(schedule))
                self._executor.execute(schedule, times, self.step)
                self.step += count * times

    def gather(self, name: str, slot: int) -> Array:
        """The global array of a field in a slot."""
        return self._executor.gather(name, slot)

    def close(self) -> None:
        """Release the devices."""
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _executor(plan: Layout, kernel: Kernel, ranks: Ranks | None) -> Executor:
    """The executor of virtual devices, of one process or of several."""
    if ranks is None:
        return ThreadedExecutor(plan, 0, kernel)
    mail = MpiMail(ranks, plan.problem.grid.dtype)
    return RankedExecutor(ThreadedExecutor(plan, 0, kernel, devices=ranks.mine, mail=mail), ranks)
