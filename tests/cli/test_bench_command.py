"""`peergrid bench` on virtual devices: table, JSON, chart, refusals."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call

from peergrid.bench import measure, suites
from peergrid.bench.measure import Case, Measured, with_efficiency
from peergrid.bench.problems import jacobi
from peergrid.bench.suites import SUITES, Size
from peergrid.cli.bench import advice, counts_of
from peergrid.errors import DoesNotFit
from peergrid.runtime.devices import parse_devices
from peergrid.schedule import Options
from peergrid.schedule.strategies import STRATEGIES

TINY = Size(jacobi=48, ladder=32, small=(32, 24), fdtd=64, own=32, steps=10)
NAMES = "ladder, jacobi, fdtd, small, own"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    command = import_module("peergrid.cli.bench")
    monkeypatch.setattr(command, "LITTLE", TINY)
    monkeypatch.setattr(command, "copy_bandwidth", lambda devices: 1e10)
    monkeypatch.setattr(measure, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(measure, "SUSTAINED_WARM_UP", 0.0)


def test_a_narrow_terminal_cuts_no_figures() -> None:
    terminal, end = os.openpty()
    asked = [sys.executable, "-m", "peergrid", "bench", "small", "--only", "256² each async", "--machine", "h200-x2"]
    with subprocess.Popen(asked, stdout=end, env={**os.environ, "COLUMNS": "40"}) as process:
        os.close(end)
        said = b"".join(iter(lambda: read_from(terminal), b"")).decode()
    os.close(terminal)
    assert process.returncode == 0
    assert "GCells/s" in said
    assert "…" not in said


def read_from(terminal: int) -> bytes:
    """What a terminal shows next; nothing once its program has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_rates_shares_and_efficiency_follow_from_the_times(call: Call, tmp_path: Path) -> None:
    assert call("bench", "jacobi", "--devices", "cpu:1", "-o", "out").out.endswith(
        "wrote out/jacobi.json\nwrote out/jacobi.png\n"
    )
    answer = call("bench", "jacobi", "--devices", "cpu:2", "-o", "out", "--json")
    assert answer.code == 0, answer.err
    found = answer.json
    assert "out" not in shlex.split(found["about"]["command"])
    assert found["about"]["command"].startswith("peergrid bench jacobi --devices cpu:2")
    assert json.loads((tmp_path / "out/jacobi.json").read_text()) == found
    assert (tmp_path / "out/jacobi.png").read_bytes().startswith(b"\x89PNG")
    one, two = (row for row in found["rows"] if row["series"] == "weak overlap")
    assert (one["shape"], two["shape"]) == ([48, 48], [96, 48])
    for row in (one, two):
        cells = row["shape"][0] * row["shape"][1]
        assert row["gcells_per_s"] == pytest.approx(cells / row["seconds_per_step"] / 1e9)
        assert row["of_copy"] == pytest.approx(8 * cells / row["seconds_per_step"] / 1e10 / row["count"])
        assert row["seconds_per_step"] == sorted(row["samples"])[measure.SAMPLES // 2]
        assert row["spread"] == pytest.approx((max(row["samples"]) - min(row["samples"])) / row["seconds_per_step"])
        assert (row["options"]["strategy"], row["options"]["depth"]) == ("overlap", 8)
        assert row["steps"] % 16 == 0
        assert row["watts"] is None
    assert one["efficiency"] == 1
    assert two["efficiency"] == pytest.approx(two["gcells_per_s"] / one["gcells_per_s"] / 2)


def row(series: str, base: str, count: int, rate: float) -> Measured:
    given: dict[str, Any] = {"of_copy": None, "efficiency": None, "against": None, "host_seconds_per_step": None}
    given |= {"watts": None, "notes": ()}
    options, seconds = Options("serial"), 1 / rate
    return Measured(series, base, f"cpu:{count}", count, (4, 4), options, 2, (seconds,), seconds, 0.0, rate, **given)


def test_efficiency_is_counted_from_the_fastest_single_device_of_the_group() -> None:
    rows = [row("plain", "a", 1, 8.0), row("plain", "a", 2, 15.0), row("better", "a", 1, 10.0), row("b", "b", 2, 1.0)]
    assert [found.efficiency for found in with_efficiency(rows)] == [0.8, 0.75, 1.0, None]


def test_a_run_that_is_stopped_leaves_what_it_has(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, left = import_module("peergrid.cli.bench"), [3]

    def stopping(*given: object) -> tuple[Measured, ...]:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return measure.measure(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "measure", stopping)
    assert call("bench", "jacobi", "--devices", "cpu:2", "-o", "out").code
    found = json.loads((tmp_path / "out/jacobi.json").read_text())
    assert [(row["series"], row["count"]) for row in found["rows"]] == [("strong overlap", 1), ("strong overlap", 2)]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["jacobi.json"]


def test_what_is_compared_is_measured_in_turns(call: Call) -> None:
    found = call("bench", "own", "--devices", "cpu:1", "--only", "lossy", "--json").json["rows"]
    assert [row["series"] for row in found][:2] == ["lossy waves: shipped", "lossy waves: own"]
    shipped, own = found[:2]
    assert shipped["against"] == 1
    shares = sorted(theirs / mine for mine, theirs in zip(own["samples"], shipped["samples"], strict=True))
    assert own["against"] == pytest.approx(shares[measure.SAMPLES // 2])


@pytest.mark.parametrize("name", SUITES)
def test_every_group_has_a_case_on_one_device(name: str) -> None:
    cases = list(SUITES[name].cases(suites.LARGE, (1, 2, 8)))
    assert {case.base for case in cases} == {case.base for case in cases if case.count == 1}


def test_the_ladder_compares_every_strategy_on_every_problem() -> None:
    cases = list(SUITES["ladder"].cases(suites.LARGE, (1, 2)))
    for problem in ("radar, wide", "radar, tall", "Jacobi"):
        ways = {(case.strategy, case.count) for case in cases if case.base == problem}
        assert ways == {(strategy, count) for strategy in STRATEGIES for count in (1, 2)}


def test_the_table(call: Call) -> None:
    answer = call("bench", "ladder", "--devices", "cpu:1", "--only", "wide: serial")
    assert answer.code == 0
    assert "radar, wide: serial" in answer.out
    assert "tall: serial" not in answer.out
    assert "100.0%" in answer.out


def test_the_end_says_what_is_fastest_and_whether_to_measure_again(call: Call) -> None:
    answer = call("bench", "ladder", "--devices", "cpu:1", "--only", "wide: serial")
    assert "radar, wide: fastest on cpu:1 with --strategy serial --depth 1" in answer.out
    (row,) = measure.measure(
        [Case("a: x", lambda: jacobi(16, 16), 1, "serial", 1, 2, "a")], parse_devices("cpu:1"), None
    )
    calm, wild = replace(row, spread=0.1, gcells_per_s=2.0), replace(row, spread=0.3, gcells_per_s=1.0)
    assert not any("measure again" in line for line in advice([calm]))
    assert advice([wild, calm])[0] == "a: fastest on cpu:1 with --strategy serial --depth 1, 2 GCells/s."
    assert advice([wild, calm])[-1].startswith("The times of 1 of 2 cases vary by more than 20%")


def test_the_table_shows_power_where_it_is_known(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("bench", "jacobi", "--devices", "cpu:2", "--only", "held")
    plain = call(*asked)
    assert plain.out.count("held") == 4 + 2, "rows of the table, and what is fastest of each"
    assert "W per GPU" not in plain.out
    command = import_module("peergrid.cli.bench")

    def drawing(cases: list[measure.Case], *given: Any) -> tuple[Measured, ...]:
        known = (689.0, 701.0) if cases[0].count == 2 else None
        return tuple(replace(row, watts=known) for row in measure.measure(cases, *given))

    monkeypatch.setattr(command, "measure", drawing)
    answer = call(*asked)
    assert answer.out.count("W per GPU") == 1
    assert answer.out.count(" 695 ") == 2
    assert call(*asked, "--json").json["rows"][1]["watts"] == [689.0, 701.0]


def test_what_is_held_has_its_own_singles() -> None:
    cases = [case for case in SUITES["jacobi"].cases(suites.LARGE, (1, 2, 8)) if case.sustained]
    assert [(case.series, case.base, case.count) for case in cases] == [
        (series, series, count) for series in ("strong, held", "weak, held") for count in (1, 2, 8)
    ]


def test_all_powers_of_two_and_all_devices() -> None:

    assert [counts_of(n) for n in (1, 2, 3, 6, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 6), (1, 2, 4, 8)]


@pytest.mark.parametrize(("asked", "counts"), [("3", [3]), ("3,1,3", [1, 3])])
def test_only_on_as_many_devices_as_named(call: Call, tmp_path: Path, asked: str, counts: list[int]) -> None:
    answer = call("bench", "ladder", "--devices", "cpu:3", "--only", "tall: serial", "--counts", asked, "-o", "out")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "out/ladder.json").read_text())
    assert found["about"]["command"].endswith(f"--counts {asked}")
    assert [row["count"] for row in found["rows"]] == counts
    assert [row["efficiency"] is None for row in found["rows"]] == [1 not in counts] * len(counts)
    assert (tmp_path / "out/ladder.png").exists()


def test_what_has_one_device_in_any_case_is_left_out_too(call: Call) -> None:
    found = call("bench", "fdtd", "--devices", "cpu:2", "--counts", "2", "--json").json["rows"]
    assert [(row["series"], row["count"]) for row in found] == [("large radar, overlap", 2), ("large radar, peer", 2)]


def test_refusals(call: Call) -> None:
    assert call("bench", "laddr").err == f"A benchmark is one of {NAMES}, got 'laddr'.\n"
    found = call("bench", "small", "--devices", "cpu:1", "--only", "nothing")
    assert found.code == 2
    assert found.err == (
        "No series of 'small' has 'nothing' in its name (on 1 devices); leave '--only' and '--counts' out to see them "
        "all.\n"
    )


def test_what_has_no_room_is_passed_over_unless_nothing_has(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(cases: list[measure.Case], *given: Any) -> tuple[Measured, ...]:
        if cases[0].count in refused:
            raise DoesNotFit("There is no room for it.")
        return measure.measure(cases, *given)

    monkeypatch.setattr(import_module("peergrid.cli.bench"), "measure", refusing)
    asked, refused = ("bench", "fdtd", "--devices", "cpu:2", "--only", "overlap", "--json"), {2}
    assert [row["count"] for row in call(*asked).json["rows"]] == [1]
    refused = {1, 2}
    found = call(*asked)
    assert (found.code, found.out) == (3, "")
    assert found.err.endswith("There is no room for it.\n")


def test_a_machine_that_is_not_here_is_predicted(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("peergrid.cli.bench"), "LARGE", replace(TINY, jacobi=8192))
    asked = ("bench", "jacobi", "--machine", "h200-x8", "--counts", "1,8", "--only", "strong")
    answer = call(*asked, "-o", "out", "--json")
    assert answer.code == 0, answer.err
    found = answer.json
    assert json.loads((tmp_path / "out/jacobi-foretold.json").read_text()) == found
    assert (found["machine"], found["machine_measured"]) == ("h200-x8", True)
    one, eight = (row for row in found["rows"] if row["series"] == "strong, one step")
    assert (one["count"], one["options"]["depth"], one["efficiency"]) == (1, 1, 1.0)
    assert one["gcells_per_s"] == pytest.approx(8192**2 / one["seconds_per_step"] / 1e9)
    assert eight["efficiency"] == pytest.approx(eight["gcells_per_s"] / one["gcells_per_s"] / 8)
    assert 1 < one["seconds_per_step"] / eight["seconds_per_step"] < 8
    assert "predicted, not measured" in call(*asked[:5], "1", "--only", "strong peer").out
    assert call(*asked[:4], "--devices", "cpu:2").err.startswith("'--machine' predicts and uses no devices")
    assert "each from 1 to the number of devices, here 8, got '9'" in call(*asked[:5], "9").err
