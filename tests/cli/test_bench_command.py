"""`peergrid bench` on virtual devices: table, JSON, chart, refusals."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from cli_call import Call

from peergrid.bench import suites
from peergrid.bench.suites import SUITES, Size
from peergrid.cli.bench import counts_of

TINY = Size(jacobi=48, ladder=32, small=(32, 24), fdtd=64, steps=10, norms=False)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    command = import_module("peergrid.cli.bench")
    monkeypatch.setattr(command, "LITTLE", TINY)
    monkeypatch.setattr(command, "copy_bandwidth", lambda devices: 1e10)


def test_rates_shares_and_efficiency_follow_from_the_times(call: Call, tmp_path: Path) -> None:
    answer = call("bench", "jacobi", "--devices", "cpu:2", "-o", "out", "--json")
    assert answer.code == 0, answer.err
    found = answer.json
    assert found["about"]["command"].startswith("peergrid bench jacobi")
    assert json.loads((tmp_path / "out/jacobi.json").read_text()) == found
    assert (tmp_path / "out/jacobi.png").read_bytes().startswith(b"\x89PNG")
    one, two = (row for row in found["rows"] if row["series"] == "weak overlap")
    assert (one["shape"], two["shape"]) == ([48, 48], [96, 48])
    for row in (one, two):
        cells = row["shape"][0] * row["shape"][1]
        assert row["gcells_per_s"] == pytest.approx(cells / row["seconds_per_step"] / 1e9)
        assert row["of_copy"] == pytest.approx(8 * cells / row["seconds_per_step"] / 1e10 / row["count"])
    assert one["efficiency"] == 1
    assert two["efficiency"] == pytest.approx(two["gcells_per_s"] / one["gcells_per_s"] / 2)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_has_a_base_for_every_series(name: str) -> None:
    cases = list(SUITES[name].cases(suites.LARGE, (1, 2, 8)))
    alone = {case.series for case in cases if case.count == 1}
    assert {case.base for case in cases} <= alone
    first = {case.series: number for number, case in reversed(list(enumerate(cases)))}
    assert all(first[case.base] <= number for number, case in enumerate(cases))


def test_the_table(call: Call) -> None:
    answer = call("bench", "ladder", "--devices", "cpu:1", "--only", "wide serial")
    assert answer.code == 0
    assert "wide serial" in answer.out
    assert "tall serial" not in answer.out
    assert "100.0%" in answer.out


def test_all_powers_of_two_and_all_devices() -> None:

    assert [counts_of(n) for n in (1, 2, 3, 6, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 6), (1, 2, 4, 8)]


def test_refusals(call: Call) -> None:
    assert call("bench", "laddr").err == "A benchmark is one of ladder, jacobi, fdtd, small, got 'laddr'.\n"
    found = call("bench", "small", "--devices", "cpu:1", "--only", "nothing")
    assert found.err.endswith("No series of 'small' has 'nothing' in its name; leave '--only' out to see them all.\n")
