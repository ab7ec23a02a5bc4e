"""Choosing an arrangement by trial: what is tried, what is remembered, what the user named stays."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.trial import WORTH_CELLS, Trial
from peergrid.stencil import Problem

PROBLEM = PROBLEMS["heat_fixed"]()
USUAL = Options("overlap", depth=8)


def trial(tmp_path: Path, devices: int = 2, steps: int = 400, problem: Problem = PROBLEM) -> Trial:
    partition = Partition.over(problem.grid, devices)
    return Trial(problem, partition, tuple(range(devices)), steps, cache=tmp_path, driver=HostDriver())


def fake(times: dict[tuple[str, int], float], asked: list[tuple[str, int]], patch: pytest.MonkeyPatch) -> None:
    def seconds(self: Trial, strategy: str, depth: int) -> float:
        asked.append((strategy, depth))
        return times.get((strategy, depth), 1.0)

    patch.setattr(Trial, "_seconds", seconds)


def test_the_fastest_depth_then_the_fastest_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("peer", 6): 0.5, ("overlap", 6): 0.4, ("overlap", 8): 0.1}, asked, monkeypatch)
    assert trial(tmp_path).fastest(USUAL) == Options("overlap", 6)
    assert ("overlap", 8) not in asked
    asked.clear()
    assert trial(tmp_path).fastest(USUAL) == Options("overlap", 6)
    assert not asked  # remembered
    assert trial(tmp_path, devices=3).fastest(USUAL) == Options("overlap", 6)
    assert asked  # another machine


def test_what_the_user_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    fake({("async", 4): 0.5}, asked, monkeypatch)
    assert trial(tmp_path).fastest(USUAL, strategy="async") == Options("async", 4)
    assert {strategy for strategy, _ in asked} == {"async"}
    asked.clear()
    assert trial(tmp_path).fastest(USUAL, depth=20).depth == 20
    assert {depth for _, depth in asked} == {20}
    asked.clear()
    assert trial(tmp_path).fastest(USUAL, strategy="serial", depth=3) == Options("serial", 3)
    assert not asked


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"strategy": "none", "depth": 8}', '{"strategy": "peer"}'])
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
    assert trial(tmp_path).fastest(USUAL) == Options("peer", 6)


def test_nothing_can_be_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "_seconds", lambda *_: inf)
    assert trial(tmp_path).fastest(USUAL) == USUAL
    assert not (tmp_path / "trials").exists()


def test_only_long_runs_are_worth_it(tmp_path: Path) -> None:
    cells = PROBLEM.grid.box.size
    enough = -(-2 * WORTH_CELLS // cells)
    assert trial(tmp_path, steps=enough).worthwhile
    assert not trial(tmp_path, steps=enough - 1).worthwhile
    assert not trial(tmp_path, devices=3, steps=enough).worthwhile


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_on_the_hosts_driver(tmp_path: Path) -> None:
    driver = HostDriver()
    found = replace(trial(tmp_path), driver=driver).fastest(Options("overlap", depth=4))
    assert found.depth in (2, 3, 4)
    assert found.strategy in ("peer", "overlap", "persistent")
    assert not driver.live
    short = trial(tmp_path / "short", steps=3)
    assert short.fastest(Options("overlap", depth=4)) == Options("overlap", depth=4)  # no room for a trial


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_what_does_not_fit_is_left_to_the_run_to_say(tmp_path: Path) -> None:
    full = replace(trial(tmp_path), driver=HostDriver(free=1 << 20))
    assert full.fastest(USUAL) == USUAL
