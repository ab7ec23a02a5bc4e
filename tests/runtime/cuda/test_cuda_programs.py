"""The programs of a run: all known from the layout, compiled once and before they are loaded."""

from __future__ import annotations

import re
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS, random_heat, yee_with_absorber
from test_cuda_remainder import sound

from peergrid import Options
from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.choose.steps import block_of
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.codegen.nvrtc import CompileError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda import executor as cuda_executor
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import Lowered, Noting, lower
from peergrid.runtime.cuda.lowering.programs import Needed, Programs
from peergrid.schedule import Schedule, build, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STEPS = 40


def prepared(
    problem: Problem, options: Options, devices: int, norm: str | None = None, gpu: GpuModel = H200
) -> tuple[HostDriver, list[str], list[str]]:
    """A run's schedules prepared: the driver, the texts that were expected, those that were compiled in the end."""
    driver, ordinals = HostDriver(gpu=gpu), tuple(range(devices))
    align = (24, 24) if norm else ()
    plan = layout(problem, Partition(problem.grid, (devices, *(1,) * (problem.grid.ndim - 1))), options, align)
    schedules: list[Schedule] = [one_iteration(plan, options), build(plan, options, options.depth + 1)]
    with closing(CudaExecutor(plan, STEPS, ordinals, driver=driver, norm=norm)) as executor:
        executor.expect(schedules)
        executor._execution.programs.settle()
        expected = list(driver.texts)
        for schedule in schedules:
            executor.prepare(schedule)
        executor.first_nonfinite(problem.state[0], 0)
    return driver, expected, driver.texts


def kernels(text: str) -> set[str]:
    return set(re.findall(r"(\w+)\(const __grid_constant__", text))


NAMES: list[tuple[str, int]] = [(name, 1) for name in PROBLEMS] + [("heat_fixed", 3), ("sound", 2)]
STRATEGIES: list[StrategyName] = ["overlap", "peer", "graph", "threads"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("name", "depth"), NAMES)
@pytest.mark.parametrize("devices", [1, 2])
def test_all_programs_are_known_before_one_is_loaded(
    name: str, depth: int, devices: int, strategy: StrategyName
) -> None:
    problem = sound() if name == "sound" else PROBLEMS[name]()
    options = Options(strategy, depth, block=block_of(problem, depth))
    driver, expected, compiled = prepared(problem, options, devices)
    assert compiled == expected
    assert len(compiled) == len(set(compiled))
    assert all(kernels(text) <= driver.kernels for text in compiled if text != expanded(service.SOURCE))  # none in vain


@pytest.mark.parametrize(("depth", "devices"), [(1, 1), (1, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("strategy", ["overlap", "peer"])
def test_with_norms(strategy: StrategyName, depth: int, devices: int) -> None:
    driver, expected, compiled = prepared(
        random_heat((96, 200), ("fixed", "fixed")), Options(strategy, depth), devices, "u"
    )
    assert compiled == expected
    assert len(compiled) == len(set(compiled))
    assert all(kernels(text) <= driver.kernels for text in compiled if text != expanded(service.SOURCE))


def test_one_pass_for_all_stages() -> None:
    gpu = replace(H200, streamed_cells=1)
    driver, expected, compiled = prepared(yee_with_absorber((150, 330)), Options("overlap"), 1, gpu=gpu)
    assert compiled == expected
    assert "stream2d" in driver.kernels


def test_persistent_kernels_that_are_tried_first_are_known() -> None:
    problem = random_heat((90, 200), ("fixed", "fixed"))
    _, expected, compiled = prepared(problem, Options("persistent", 2), 2)
    assert sum("struct Passes" in text for text in expected) == 1
    assert len(compiled) == len(set(compiled))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_trace_knows_its_programs_before_one_is_loaded(
    strategy: StrategyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a run has one kernel for a pass and its exchange, and a trace has not."""
    known: list[str] = []

    def lowering(execution: ExecutionContext, schedule: Schedule, *, noting: Noting) -> Lowered:
        execution.programs.settle()
        known.extend(driver.texts)
        return lower(execution, schedule, noting=noting)

    monkeypatch.setattr(cuda_executor, "lower", lowering)
    problem, options, driver = yee_with_absorber((150, 330)), Options(strategy, 2), HostDriver()
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    with closing(CudaExecutor(plan, STEPS, (0, 1), driver=driver)) as executor:
        executor.trace(one_iteration(plan, options), 0)
    assert driver.texts == known
    assert len(known) == len(set(known)) > 1


def test_a_text_that_is_refused_is_said_to_whom_it_serves() -> None:
    class Refusing(HostDriver):
        def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None = None) -> bytes:
            raise CompileError("no such thing", source)

    devices = Devices(Refusing(), (0,))
    with closing(Programs(devices, None)) as programs:
        programs.expect([Needed({"nothing": 0})])
        programs.settle()
        with pytest.raises(CompileError, match="no such thing"):
            programs.function(0, "nothing", "kernel")
    devices.close()


@pytest.mark.parametrize("traced", [False, True])
def test_no_kernel_is_loaded_while_steps_are_made(traced: bool) -> None:
    """The rest of a run is compiled beside its first steps, but programs that strips wait for are loaded before
    them.
    """
    problem, loaded = yee_with_absorber((150, 330)), list[bytes]()
    slow = threading.Event()
    slow.set()

    class Slow(HostDriver):
        def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None = None) -> bytes:
            slow.wait(0.3)
            return super().compile(source, architecture, cache)

        def load(self, cubin: bytes) -> int:
            loaded.append(cubin)
            return super().load(cubin)

    options = Options("overlap", 4)
    plan = layout(problem, Partition(problem.grid, (1, 1)), options)
    with closing(CudaExecutor(plan, STEPS, (0,), driver=Slow())) as executor:
        executor.expect([whole := one_iteration(plan, options)])
        executor._execution.programs.settle()
        slow.clear()
        executor.expect([build(plan, options, 3)])
        if traced:
            executor.trace(whole, 0)
        else:
            executor.prepare(whole)
        before = len(loaded)
        executor._execution.programs.settle()
        assert len(executor._execution.programs._strips) == 2
        assert len(loaded) == before


def test_nothing_is_compiled_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = HostDriver()
    devices = Devices(driver, (0,))
    programs = Programs(devices, None)
    programs.close()
    with pytest.raises(RuntimeError):
        programs.expect([Needed({service.SOURCE: 0})])
    assert not driver.texts
    devices.close()
