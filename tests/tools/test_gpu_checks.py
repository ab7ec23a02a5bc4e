"""What `tools/gpu_check` is made of, without a GPU: the matrix, the pool of processes, the verdicts, the files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu_checks import bits as section
from gpu_checks.bits import _Groups, _References, device_lists, matrix
from gpu_checks.call import call
from gpu_checks.pool import work_off
from gpu_checks.problems import CHECKED
from gpu_checks.report import Case, Report, same_commit

from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES

LISTS = device_lists([1, 2, 4])


def test_the_matrix_has_everything_once_and_the_most_telling_first() -> None:
    runs = matrix(LISTS, tuple(STRATEGIES))
    assert len({run.name for run in runs}) == len(runs)
    assert [run.rank for run in runs] == sorted(run.rank for run in runs)
    crowded = (0, 1, 2, 3) * 2
    assert {run.devices for run in runs} == {(0,), (0, 0), (0, 1), (0, 1, 2, 3), crowded}
    assert {run.route for run in runs if run.devices == crowded} == {None}
    several = [run for run in runs if len(run.devices) > 1]
    ways = {(run.strategy, run.depth, run.route, run.order) for run in several if run.problem == "gpr"}
    assert len(ways) == len(STRATEGIES) * 4 * 4 * len(ORDERS)
    first = {(run.problem, run.devices, run.strategy) for run in runs if run.rank == 0 and run.depth == 8}
    assert len(first) == len(CHECKED) * len(LISTS) * len(STRATEGIES)


def test_eight_devices_even_on_few_gpus() -> None:
    assert device_lists([1]) == [(0,), (0, 0), (0,) * 4, (0,) * 8]
    assert device_lists([1, 2]) == [(0,), (0, 0), (0, 1), (0, 1) * 2, (0, 1) * 4]
    assert device_lists([1, 2, 4, 8]) == [(0,), (0, 0), (0, 1), (0, 1, 2, 3), tuple(range(8))]


def test_a_record_is_completed_by_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run for run in matrix(LISTS[:1], ("peer", "async")) if run.problem in ("gpr", "jacobi")]
    begun: list[str] = []

    def few(tasks: list[tuple[str, Any]], *_: object) -> Iterator[Case]:
        for name, _task in tasks[:6]:
            begun.append(name)
            wrong = name == runs[0].name
            yield made(name, ("b" if wrong else "a") * 64)

    monkeypatch.setattr(section, "work_off", few)
    earlier: list[Case] = []
    calls = 0
    while not calls or earlier[-1]["case"] == "time was up":
        report = Report(tmp_path / "bits.json", time.monotonic() + 60, earlier)
        section._compare(report, runs, 1)
        report.write()
        earlier, calls = json.loads(report.path.read_text()), calls + 1
    assert calls == 3
    assert sorted(begun) == sorted(["reference gpr", "reference jacobi", *(run.name for run in runs)])  # each once
    assert sorted(case["case"] for case in earlier) == sorted(begun)
    assert [case["case"] for case in earlier if not case["ok"]] == [runs[0].name]  # what failed is not forgotten


def test_other_sources_begin_anew() -> None:
    now = {"commit": "a" * 40}
    assert same_commit({"commit": "a" * 40}, now)
    assert not same_commit({"commit": "b" * 40}, now)
    assert not same_commit(None, now)
    for unsure in ("unknown", "a" * 40 + "-dirty"):
        assert not same_commit({"commit": unsure}, {"commit": unsure})


def work(worker: int, task: Any) -> Case:
    """What the pool's processes do here."""
    if task == "hang":
        time.sleep(60)
    if task == "die":
        os._exit(3)
    if task == "raise":
        raise ValueError("no")
    return {"squared": task**2}


def test_a_task_that_hangs_dies_or_fails_costs_its_process_alone() -> None:
    tasks = [("one", 1), ("hang", "hang"), ("die", "die"), ("raise", "raise"), ("two", 2), ("three", 3)]
    found = {case["case"]: case for case in work_off(tasks, work, 2, time.monotonic() + 60, limit=3.0)}
    assert {name: case.get("squared") for name, case in found.items() if case["ok"]} == {"one": 1, "two": 4, "three": 9}
    assert found["hang"]["error"] == "not done after 3 s"
    assert found["die"]["error"] == "its process died with 3"
    assert found["raise"]["error"] == "ValueError: no"


def test_nothing_begins_after_the_deadline() -> None:
    assert not list(work_off([("one", 1)], work, 1, time.monotonic() - 1))


def made(name: str, digest: str, ok: bool = True) -> Case:
    return {"case": name, "ok": ok, "sha256": digest, "wall_s": 0.0}


def test_runs_are_judged_by_the_digest_of_their_problem() -> None:
    judge = _References()
    assert not list(judge.judged(made("gpr cuda:0 peer depth 1 all", "a")))
    assert not list(judge.judged(made("gpr cuda:0 async depth 1 all", "b")))
    found = {case["case"]: case["ok"] for case in judge.judged(made("reference gpr", "a"))}
    assert found == {"gpr cuda:0 peer depth 1 all": True, "gpr cuda:0 async depth 1 all": False, "reference gpr": True}
    assert [case["ok"] for case in judge.judged(made("gpr cuda:0 graph depth 1 all", "c"))] == [False]
    assert [case["ok"] for case in judge.judged(made("jacobi cuda:0 graph depth 1 all", "", ok=False))] == [False]


def test_a_line_for_each_group(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run for run in matrix(LISTS[:1], ("peer",)) if run.problem == "gpr"]
    groups = _Groups(runs)
    for number, run in enumerate(runs):
        assert capsys.readouterr().out == ""
        groups.add(made(run.name, "", ok=number > 0))
    assert capsys.readouterr().out == "FAIL gpr cuda:0 peer: 3 of 4 have the CPU's bits\n"


def test_a_report_is_valid_json_at_any_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(tmp_path / "section.json", deadline=0.0)
    assert report.run("good", lambda: {"figure": 3})
    assert [case["case"] for case in json.loads(report.path.read_text())] == ["good"]
    assert not report.run("bad", lambda: {}["nothing"])
    cases = json.loads(report.path.read_text())
    assert [(case["ok"], case.get("error")) for case in cases] == [(True, None), (False, "KeyError: 'nothing'")]
    assert capsys.readouterr().out.splitlines()[0].startswith("ok   good figure=3 (")


def test_a_program_is_ended_with_what_it_started() -> None:
    done = call(["bash", "-c", "echo begun; sleep 60 & wait"], 1.0)
    assert (done.code, done.out) == (None, "begun\n")
    assert done.seconds < 30
