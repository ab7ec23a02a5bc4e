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
from peergrid.resolve import default_options, resolve_options
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.devices import Devices
from peergrid.schedule import ResolvedOptions, Schedule, layout, one_iteration
from peergrid.stencil import Problem
from peergrid.trials.step_timer import StepTimer
from peergrid.trials.trial import Trial

PROBLEM = PROBLEMS["heat_fixed"]()
USUAL = Options("overlap", depth=8)
WAYS = tuple(Options(strategy, depth) for strategy in ("peer", "overlap", "persistent") for depth in (8, 6))
SHALLOW = tuple(Options(strategy, depth) for strategy in ("peer", "overlap", "persistent") for depth in (4, 2))


def trial(
    tmp_path: Path,
    devices: int = 2,
    steps: int = 400,
    problem: Problem = PROBLEM,
    gpu: GpuModel = H200,
    ways: tuple[Options, ...] = WAYS,
) -> Trial:
    partition, ordinals = Partition.over(problem.grid, devices), tuple(range(devices))
    return Trial(problem, partition, ordinals, steps, ways, cache=tmp_path, driver=HostDriver(gpu=gpu))


def fake(times: dict[tuple[str, int], float], asked: list[tuple[str, int]], patch: pytest.MonkeyPatch) -> None:
    def seconds(self: Trial, options: Options, timer: StepTimer) -> float:
        asked.append((options.strategy, options.depth))
        return times.get(asked[-1], 1.0)

    patch.setattr(Trial, "step_seconds", seconds)


def test_the_fastest_is_taken_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("graph", 4): 0.4, ("peer", 8): 0.5}, asked, monkeypatch)
    said, ways = list[str](), (Options("peer", 8), Options("graph", 4), USUAL)
    tuned = replace(trial(tmp_path, ways=ways), say=said.append)
    found = tuned.fastest(USUAL)
    assert found.options == Options("graph", 4)
    assert found.notes[0].startswith("'graph', depth 4: the fastest of 3 ways tried in ")
    assert "4e+05 µs per step ('peer', depth 8: 5e+05; 'overlap', depth 8: 1e+06)" in found.notes[0]
    assert said == ["compiling and trying a few ways to arrange the run; the fastest is remembered"]
    assert asked == [("peer", 8), ("overlap", 8), ("graph", 4)]  # those of one depth on the same memory
    asked.clear()
    found = replace(tuned).fastest(USUAL)
    assert found.options == Options("graph", 4)
    assert found.notes == ("'graph', depth 4: the fastest of an earlier trial on these GPUs.",)
    assert not asked  # remembered
    assert len(said) == 1
    assert trial(tmp_path, devices=3, ways=ways).fastest(USUAL).options == Options("graph", 4)
    assert asked  # another machine
    asked.clear()
    elsewhere = tuple(replace(way, route="host") for way in ways)
    assert trial(tmp_path, ways=elsewhere).fastest(USUAL).options == replace(ways[1], route="host")
    assert asked  # not what was found for another route
    asked.clear()
    monkeypatch.setattr(HostDriver, "name", lambda *_: "another")
    assert trial(tmp_path, ways=ways).fastest(USUAL).options == Options("graph", 4)
    assert asked  # other GPUs


def test_one_way_needs_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({}, asked, monkeypatch)
    assert trial(tmp_path, ways=(Options("serial", 3),)).fastest(USUAL) == ResolvedOptions(Options("serial", 3))
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
        trial(tmp_path, problem=given, ways=(Options("overlap", 1), Options("peer", 1))).fastest(USUAL)
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
    assert not (tmp_path / "trials").exists()


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_on_the_hosts_driver(tmp_path: Path) -> None:
    driver = HostDriver()
    assert replace(trial(tmp_path, ways=SHALLOW), driver=driver).fastest(USUAL).options in SHALLOW
    assert not driver.live
    short = trial(tmp_path / "short", steps=3, ways=SHALLOW)
    assert short.fastest(USUAL) == ResolvedOptions(USUAL)  # no room for a trial


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_kernels_are_compiled_before_they_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead: list[str] = []
    driver, tried = HostDriver(), Trial.step_seconds

    def seconds(self: Trial, options: Options, timer: StepTimer) -> float:
        ahead[:] = ahead or driver.texts
        return tried(self, options, timer)

    monkeypatch.setattr(Trial, "step_seconds", seconds)
    replace(trial(tmp_path, ways=SHALLOW), driver=driver).fastest(USUAL)
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
    assert driver.peak <= alone + (1 << 15)  # flags and iterations of other strategies, less than a second run


def failing(fault: DeviceFault, patch: pytest.MonkeyPatch) -> list[int]:
    """Let every candidate of the strategy 'peer' fail in its first iteration; the steps at which one did."""
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
    found = replace(trial(tmp_path, ways=SHALLOW[1:]), driver=driver).fastest(USUAL)
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


def test_passes_are_those_that_find_room_in_shared_memory(tmp_path: Path) -> None:
    cube = trial(tmp_path, problem=PROBLEMS["heat_cube"]())
    drivers = (HostDriver(gpu=H200.with_block_shared(count)) for count in (227 << 10, 10 << 10, 2 << 10))
    assert [replace(cube, driver=driver)._arranged(USUAL)[1].options.block for driver in drivers] == [4, 2, 1]


def on_slow_links(patch: pytest.MonkeyPatch) -> Devices:
    """Four GPUs whose links show, as far as runs are arranged on them."""
    slow, driver = Line(1e-6, 2e9), HostDriver(gpus=4, gpu=H200)
    machine = replace(machine_named("h200-x4"), copy=slow, store=slow)
    patch.setattr("peergrid.predict.here.machine_here", lambda *_: machine)
    for room in ("runtime.cuda.memory.room", "trials.trial"):
        patch.setattr(f"peergrid.{room}.CudaDriver", lambda: driver)
    return Devices("cuda", tuple(range(4)))


def test_a_run_is_arranged_as_predicted_and_a_long_one_tries_that(
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


def test_what_nothing_is_predicted_of_is_arranged_in_the_usual_way(tmp_path: Path) -> None:
    shared = Devices("cuda", (0, 0))
    found = resolve_options(shared, PROBLEM, 10**7, depth=2, cache=tmp_path)
    assert found == ResolvedOptions(replace(default_options(shared, PROBLEM), depth=2))
