"""Forecasts for virtual devices: what is measured, and what is simulated."""

from __future__ import annotations

from contextlib import closing

from executions import load
from predict_problems import flat

from peergrid.grid.partition import Partition
from peergrid.predict.virtual import VirtualForecaster, virtual_machine
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule import Options, layout, one_iteration


def test_the_kernel_stays_what_it_was() -> None:
    problem, options = flat(64, 48), Options("overlap", depth=2)
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    with closing(ThreadedExecutor(plan, 4, ReferenceKernel(problem))) as executor:
        load(executor)
        kernel = executor.kernel
        assert VirtualForecaster(executor).seconds_per_step(one_iteration(plan, options)) > 0
        assert executor.kernel is kernel


def test_a_pass_is_measured_with_all_devices_busy() -> None:
    problem, options = flat(64, 48), Options("async")
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    busy = list[object]()

    class Watched(ReferenceKernel):
        def __call__(self, memory, *rest):  # type: ignore[no-untyped-def]
            busy.append(memory)
            super().__call__(memory, *rest)

    with closing(ThreadedExecutor(plan, 4, Watched(problem))) as executor:
        load(executor)
        assert VirtualForecaster(executor).seconds_per_step(one_iteration(plan, options)) > 0
        each = [sum(memory is executor.memories[device] for memory in busy) for device in (0, 1)]
        assert each[0] == each[1] > 0


def test_the_kernel_of_passes_with_another_behind_is_measured_and_never_beyond_a_run() -> None:
    """Idle passes, which say how threads get in each other's way, are more than the traces have room for."""
    problem, options = flat(64, 48), Options("async")
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    ends = list[int]()

    class Within(ReferenceKernel):
        left = frozenset[str]()

        def __call__(self, memory: DeviceMemory, part: Pass) -> None:
            ends.append(part.step + part.steps)
            super().__call__(memory, part)

    within = Within(problem)
    with closing(ThreadedExecutor(plan, 4, ReferenceKernel(problem), within=within)) as executor:  # type: ignore[arg-type]
        load(executor)
        assert VirtualForecaster(executor).seconds_per_step(one_iteration(plan, options)) > 0
        assert executor.within is within
    assert ends
    assert max(ends) <= 4


def test_what_the_interpreter_takes_is_measured_once() -> None:
    assert virtual_machine() is virtual_machine()
