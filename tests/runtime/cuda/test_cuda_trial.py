"""Choosing an arrangement by trial: what is tried, what is remembered, what the user named stays."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS, heat_3d

from peergrid import DeviceFault, Grid, Options, stencil
from peergrid.bench.problems import jacobi
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.costs.machine import Line
from peergrid.costs.machines import machine_named
from peergrid.grid.partition import Partition
from peergrid.resolve import resolve_options
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.step_timer import StepTimer
from peergrid.runtime.cuda.trial import WORTH_SECONDS, Trial
from peergrid.runtime.devices import Devices
from peergrid.schedule import ResolvedOptions, Schedule, layout, one_iteration
from peergrid.stencil import Problem

PROBLEM = PROBLEMS["heat_fixed"]()
USUAL = Options("overlap", depth=8)


def trial(
    tmp_path: Path, devices: int = 2, steps: int = 400, problem: Problem = PROBLEM, gpu: GpuModel = H200
) -> Trial:
    partition = Partition.over(problem.grid, devices)
    return Trial(problem, partition, tuple(range(devices)), steps, cache=tmp_path, driver=HostDriver(gpu=gpu))


def fake(times: dict[tuple[str, int], float], asked: list[tuple[str, int]], patch: pytest.MonkeyPatch) -> None:
    def seconds(self: Trial, options: Options, timer: StepTimer) -> float:
        asked.append((options.strategy, options.depth))
        return times.get(asked[-1], 1.0)

    patch.setattr(Trial, "step_seconds", seconds)


def test_named_ways_are_tried_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("graph", 4): 0.5, ("peer", 8): 0.7}, asked, monkeypatch)
    found = replace(trial(tmp_path), ways=(Options("peer", 8), Options("graph", 4), USUAL)).fastest(USUAL)
    assert found.options == Options("graph", 4)
    assert asked == [("peer", 8), ("overlap", 8), ("graph", 4)]  # those of one depth on the same memory


def test_the_fastest_depth_then_the_fastest_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("peer", 6): 0.5, ("overlap", 6): 0.4, ("overlap", 8): 0.1}, asked, monkeypatch)
    said: list[str] = []
    found = replace(trial(tmp_path), say=said.append).fastest(USUAL)
    assert found.options == Options("overlap", 6)
    assert found.notes[0].startswith("'overlap', depth 6: the fastest of 5 ways tried in ")
    assert "4e+05 µs per step ('peer', depth 8: 1e+06; 'peer', depth 6: 5e+05; " in found.notes[0]
    assert said == ["compiling and trying a few ways to arrange the run; the fastest is remembered"]
    assert [way for way in asked if way[0] == "persistent"] == [("persistent", 8), ("persistent", 6)]
    assert ("overlap", 8) not in asked
    asked.clear()
    found = replace(trial(tmp_path), say=said.append).fastest(USUAL)
    assert found.options == Options("overlap", 6)
    assert found.notes == ("'overlap', depth 6: the fastest of an earlier trial on these GPUs.",)
    assert not asked  # remembered
    assert len(said) == 1
    assert trial(tmp_path, devices=3).fastest(USUAL).options == Options("overlap", 6)
    assert asked  # another machine
    asked.clear()
    monkeypatch.setattr(HostDriver, "name", lambda *_: "another")
    assert trial(tmp_path).fastest(USUAL).options == Options("overlap", 6)
    assert asked  # other GPUs


def test_what_the_user_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("async", 6): 0.5}, asked, monkeypatch)
    assert trial(tmp_path).fastest(USUAL, strategy="async").options == Options("async", 6)
    assert {strategy for strategy, _ in asked} == {"async"}
    asked.clear()
    assert trial(tmp_path).fastest(USUAL, depth=20).options.depth == 20
    assert {depth for _, depth in asked} == {20}
    asked.clear()
    ordered = replace(USUAL, order="pairwise", route="host")
    found = trial(tmp_path).fastest(ordered, strategy="async").options
    assert (found.order, found.route) == ("pairwise", "host")
    assert asked  # not what was found for another route
    asked.clear()
    assert trial(tmp_path).fastest(USUAL, strategy="serial", depth=3) == ResolvedOptions(Options("serial", 3))
    assert not asked


DAMAGED = [
    "",
    "[]",
    "{}",
    '{"fastest": 1}',
    '{"fastest": {"strategy": "none", "depth": 8, "order": "all", "route": null}}',
    '{"fastest": {"strategy": "peer"}}',
]


def test_another_kernel_of_many_passes_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    trial(tmp_path, problem=jacobi.__wrapped__(256, 512)).fastest(USUAL)
    asked.clear()
    gpu = replace(H200, persistent_rows=(32,))
    trial(tmp_path, problem=jacobi.__wrapped__(256, 512), gpu=gpu).fastest(USUAL)
    assert asked
    asked.clear()
    trial(tmp_path, problem=jacobi.__wrapped__(256, 512), gpu=gpu).fastest(USUAL)
    assert not asked


def test_problems_of_one_step_per_pass_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    grid = Grid((60, 64, 40), boundary="reflecting")

    @stencil
    def up(u: Any) -> None:
        u.next[0, 0, 0] = u[1, 0, 0] + u[0, 0, 0]

    @stencil
    def aside(u: Any) -> None:
        u.next[0, 0, 0] = u[0, 0, 1] * u[0, 0, 0]

    for update in (up, aside):
        given = Problem.of(update(grid.field("u")))
        asked.clear()
        trial(tmp_path, problem=given).fastest(Options("overlap", depth=1))
        assert asked


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_memory_costs_a_new_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    trial(tmp_path).fastest(USUAL)
    (place,) = (tmp_path / "trials").iterdir()
    whole = json.loads(place.read_text())
    place.write_text(text)
    asked.clear()
    trial(tmp_path).fastest(USUAL)
    assert asked
    assert json.loads(place.read_text()) == whole


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trials").write_text("a file")
    fake({("peer", 6): 0.5}, [], monkeypatch)
    assert trial(tmp_path).fastest(USUAL).options == Options("peer", 6)


def test_nothing_can_be_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "step_seconds", lambda *_: inf)
    assert trial(tmp_path).fastest(USUAL) == ResolvedOptions(USUAL)
    assert trial(tmp_path).fastest(USUAL, strategy="async") == ResolvedOptions(Options("async", 8))
    assert trial(tmp_path).fastest(USUAL, depth=3) == ResolvedOptions(Options("overlap", 3))
    assert not (tmp_path / "trials").exists()


def test_only_long_runs_are_worth_it(tmp_path: Path) -> None:
    launch, large = H200.costs.calls.launch, jacobi(4096, 4096)
    enough = int(WORTH_SECONDS / launch)
    assert trial(tmp_path, steps=enough).worthwhile  # however small the grid
    assert not trial(tmp_path, steps=enough // 2).worthwhile
    moved = 8 * (1 << 23) / H200.costs.bandwidth
    enough = int(WORTH_SECONDS / (launch + moved)) + 1
    assert trial(tmp_path, steps=enough, problem=large).worthwhile
    assert not trial(tmp_path, steps=enough - 1, problem=large).worthwhile
    assert not trial(tmp_path, devices=3, steps=enough, problem=large).worthwhile


def test_runs_are_as_long_as_foretold(tmp_path: Path) -> None:
    assert replace(trial(tmp_path, steps=1000), foretold=WORTH_SECONDS / 1000).worthwhile
    assert not replace(trial(tmp_path, steps=999), foretold=WORTH_SECONDS / 1000).worthwhile


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_on_the_hosts_driver(tmp_path: Path) -> None:
    driver = HostDriver()
    found = replace(trial(tmp_path), driver=driver).fastest(Options("overlap", depth=4)).options
    assert found.depth in (2, 3, 4)
    assert found.strategy in ("peer", "overlap", "persistent")
    assert not driver.live
    short = trial(tmp_path / "short", steps=3)
    assert short.fastest(Options("overlap", depth=4)) == ResolvedOptions(
        Options("overlap", depth=4)
    )  # no room for a trial


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_kernels_are_compiled_before_they_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead: list[str] = []
    driver, tried = HostDriver(), Trial.step_seconds

    def seconds(self: Trial, options: Options, timer: StepTimer) -> float:
        ahead[:] = ahead or driver.texts
        return tried(self, options, timer)

    monkeypatch.setattr(Trial, "step_seconds", seconds)
    replace(trial(tmp_path), driver=driver).fastest(Options("overlap", depth=4))
    assert len(ahead) == len(set(ahead)) > 2
    assert all("struct Passes" in text for text in set(driver.texts) - set(ahead))  # which of those serves, devices say


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_what_does_not_fit_is_left_to_the_run_to_say(tmp_path: Path) -> None:
    full = replace(trial(tmp_path), driver=HostDriver(free=1 << 20))
    assert full.fastest(USUAL) == ResolvedOptions(USUAL)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_candidates_have_the_memory_one_after_another(tmp_path: Path) -> None:
    driver = HostDriver()
    usual = layout(PROBLEM, Partition.over(PROBLEM.grid, 2), USUAL)
    with closing(CudaExecutor(usual, 400, (0, 1), cache=tmp_path, driver=driver)) as run:
        run.execute(one_iteration(usual, USUAL), 1, 0)
    alone = driver.peak
    assert replace(trial(tmp_path), driver=driver).fastest(USUAL).notes
    assert driver.peak <= alone + (1 << 15)  # flags and turns of other strategies, less than a second run


def failing(fault: DeviceFault, patch: pytest.MonkeyPatch) -> list[int]:
    """Let every candidate of the strategy 'peer' fail in its first turn; the steps at which one did."""
    failed: list[int] = []
    execute = CudaExecutor.execute

    def fail(self: CudaExecutor, schedule: Schedule, times: int, step: int) -> None:
        if schedule.options.strategy == "peer":
            failed.append(step)
            raise fault
        execute(self, schedule, times, step)

    patch.setattr(CudaExecutor, "execute", fail)
    return failed


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_a_candidate_that_fails_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(DeviceFault("A signal was lost."), monkeypatch)
    driver = HostDriver()
    found = replace(trial(tmp_path), driver=driver).fastest(Options("overlap", depth=2))
    assert found.options.strategy in ("overlap", "persistent")
    assert found.notes[1:] == ("'peer', depth 2, was tried and left out: A signal was lost.",)
    assert not (tmp_path / "trials").exists()  # it may have been bad luck
    assert not driver.live


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_lost_devices_end_the_trial_with_the_first_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(DeviceFault("A kernel failed."), monkeypatch)
    driver = HostDriver()

    def lost() -> None:
        if failed:
            raise DeviceFault("The context is lost.")

    monkeypatch.setattr(driver, "synchronize", lost)
    with pytest.raises(DeviceFault, match="A kernel failed"):
        replace(trial(tmp_path), driver=driver).fastest(USUAL)
    assert not driver.live


def test_gpus_that_are_not_there_are_left_to_the_run_to_say(tmp_path: Path) -> None:
    few = replace(trial(tmp_path, devices=3), driver=HostDriver(gpus=2))
    assert few.fastest(USUAL) == ResolvedOptions(USUAL)


def test_passes_are_those_that_find_room_in_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    little = HostDriver(gpu=H200.with_block_shared(10 << 10))
    replace(trial(tmp_path, problem=PROBLEMS["yee"]()), driver=little).fastest(USUAL, strategy="overlap")
    assert asked == [("overlap", 3), ("overlap", 2)]
    cube = trial(tmp_path, problem=PROBLEMS["heat_cube"]())
    least = HostDriver(gpu=H200.with_block_shared(2 << 10))
    drivers = (HostDriver(), little, least)
    assert [replace(cube, driver=driver)._within_memory(USUAL).block for driver in drivers] == [4, 2, 1]


def test_one_step_per_pass_is_tried_where_operations_in_double_precision_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Card(HostDriver):
        def double_cost(self, ordinal: int) -> int:
            return 64

    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    for dtype in ("float64", "float32"):
        grid = Grid((160, 160, 160), boundary="periodic", dtype=dtype)
        problem = Problem.of(heat_3d(grid.field("u"), 0.1))
        for number, driver in enumerate((Card(), HostDriver())):
            asked.clear()
            made = replace(trial(tmp_path / f"{dtype} {number}", problem=problem), driver=driver)
            made.fastest(Options("overlap", depth=4), strategy="overlap")
            assert (("overlap", 1) in asked) == (dtype == "float64" and number == 0)
            assert len(asked) > 1


def on_slow_links(patch: pytest.MonkeyPatch) -> Devices:
    """Four GPUs whose links show, as far as runs are arranged on them."""
    slow, driver = Line(1e-6, 2e9), HostDriver(gpus=4, gpu=H200)
    machine = replace(machine_named("h200-x4"), copy=slow, store=slow)
    patch.setattr("peergrid.predict.here.machine_here", lambda *_: machine)
    for room in ("runtime.cuda.memory.room", "runtime.cuda.trial"):
        patch.setattr(f"peergrid.{room}.CudaDriver", lambda: driver)
    return Devices("cuda", tuple(range(4)))


def test_a_run_is_arranged_as_foretold_and_a_long_one_tries_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, asked = on_slow_links(monkeypatch), list[tuple[str, int]]()
    fake({("graph", 1): 0.5}, asked, monkeypatch)
    monkeypatch.setattr(Trial, "_compile", lambda *_: None)
    problem = Problem.of(heat_3d(Grid((128, 128, 128)).field("u"), 0.1))
    short = resolve_options(devices, problem, 10, depth=1, cache=tmp_path)
    assert short.split is not None
    assert short.split.parts == (2, 2, 1)
    assert not asked
    long = resolve_options(devices, problem, 10**7, depth=1, cache=tmp_path)
    assert long.options.strategy == "graph"
    assert long.split == short.split
    assert len(asked) > 5
    named = resolve_options(devices, problem, 10, strategy="overlap", split=(4, 1, 1), cache=tmp_path)
    assert named.split is None
