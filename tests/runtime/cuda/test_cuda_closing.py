"""Giving GPUs back whatever happens: from the garbage collector, cut short by Ctrl-C, from within a step."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.commands.native import compiled
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.programs import Programs
from peergrid.runtime.cuda.submission.submitter import Submission
from peergrid.schedule import Schedule, layout, one_iteration

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
OPTIONS = Options("overlap", depth=2)


def made(driver: HostDriver, devices: int = 2) -> tuple[CudaExecutor, Schedule]:
    problem = PROBLEMS["heat_reflecting"]()
    plan = layout(problem, Partition.over(problem.grid, devices), OPTIONS)
    executor = CudaExecutor(plan, 1 << 40, tuple(range(devices)), driver=driver, submission_threads=devices)
    load(executor)
    return executor, one_iteration(plan, OPTIONS)


def test_another_run_keeps_its_context() -> None:
    driver = HostDriver()
    run, forgotten = Devices(driver, (0,)), Devices(driver, (1, 2))
    for device in (0, 1):
        forgotten.allocate(device, 64)
    run.on(0)
    forgotten.close()
    assert driver.current() == run.context(0)
    with pytest.raises(UsageError, match="given back"):
        forgotten.function(0, b"", "kernel")
    run.close()
    assert not driver.live


@pytest.mark.parametrize("often", [1, 2])
def test_ctrl_c_while_compilers_end_leaves_no_memory(monkeypatch: pytest.MonkeyPatch, often: int) -> None:
    def interrupted(programs: Programs) -> None:
        raise KeyboardInterrupt

    driver = HostDriver()
    executor, _ = made(driver)
    programs = executor._execution.programs
    monkeypatch.setattr(Programs, "close", interrupted)
    for _ in range(often):
        with pytest.raises(KeyboardInterrupt):
            executor.close()
    assert not driver.live
    monkeypatch.undo()
    programs.close()


def test_ctrl_c_stops_those_who_issue_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two threads is cut off; the other would go on for hours."""
    driver, stopped = HostDriver(), list[str]()
    executor, schedule = made(driver)
    executor.prepare(schedule)
    carry_out = executor._submitter.carry_out

    def cut_off(submission: Submission, *given: object) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        try:
            carry_out(submission, *given)  # type: ignore[arg-type]
        except UsageError as refused:
            stopped.append(str(refused))

    monkeypatch.setattr(executor._submitter, "carry_out", cut_off)
    with pytest.raises(KeyboardInterrupt):
        executor.execute(schedule, 1 << 30, 0)
    executor.close()
    assert stopped == ["The simulation was closed within its steps."]
    assert not driver.live


def test_closed_within_a_step_by_the_same_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal's handler does: what is left of the step touches nothing that was given back."""
    driver = HostDriver()
    executor, schedule = made(driver, 1)
    executor.prepare(schedule)
    entry = executor._execution.devices.entry

    def handled(name: str) -> int:
        found = entry(name)
        executor.close()
        return found

    monkeypatch.setattr(executor._execution.devices, "entry", handled)
    with pytest.raises(UsageError, match="closed within its steps"):
        executor.execute(schedule, 1, 0)
    assert not driver.live


def test_a_gpu_that_does_not_answer_is_given_back() -> None:
    class Silent(HostDriver):
        def bandwidth(self, ordinal: int) -> float:
            raise UsageError("no answer")

    driver = Silent()
    with pytest.raises(UsageError, match="no answer"):
        made(driver)
    assert not driver.live


def test_a_gpu_whose_kind_nobody_knows_is_given_back() -> None:
    class Nameless(HostDriver):
        def architecture(self, ordinal: int) -> str:
            raise UsageError("no name")

    driver = Nameless()
    with pytest.raises(UsageError, match="no name"):
        made(driver)
    assert not driver.live


def test_ctrl_c_at_the_first_call_of_the_end_gives_everything_back() -> None:
    class Interrupted(HostDriver):
        def current(self) -> int:
            raise KeyboardInterrupt

    driver = Interrupted()
    devices = Devices(driver, (0, 1))
    devices.allocate(1, 64)
    with pytest.raises(KeyboardInterrupt):
        devices.close()
    assert not driver.live


def test_without_a_folder_for_machine_code_functions_are_compiled_for_the_process() -> None:
    """An installation that is read-only, and a user without a home: such a function lies in no file."""
    made: dict[str, Any] = {}
    exec("def twice(a):\n    return 2 * a\n", made)
    assert compiled(made["twice"])(21) == 42
