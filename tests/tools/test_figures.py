"""Which recorded result counts, and what the README's tables make of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from figures import gpu, records
from figures.breadth import breadth
from figures.forecasts import RECORD, forecasts
from figures.headline import headline

Found = dict[str, Any]
KEPT = (*gpu.SAMPLES, "h200-x8-barrier", "h200-x4-hosts-one-step", "h200-blocked3d")
SMALL = {"256² each persistent": 1, "256² each persistent, deep": 8, "4096² persistent, deep": 8}


def record(suite: str, date: str, gpus: int, rows: list[Found]) -> Found:
    about = {
        "date": date,
        "gpus": ["H200"] * gpus,
        "hardware": f"{gpus} × H200",
        "commit": "abcdef0123",
        "command": "c",
    }
    return {"benchmark": suite, "about": about, "copy_bytes_per_s": 4e12, "rows": rows}


def row(series: str, count: int, rate: float, **more: Any) -> Found:
    return {"series": series, "count": count, "gcells_per_s": rate, **more}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in KEPT:
        (tmp_path / f"{name}.json").write_text((records.RESULTS / f"{name}.json").read_text())
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    return tmp_path


def save(folder: Path, found: Found) -> None:
    name = f"h200-x{len(found['about']['gpus'])}-{found['benchmark']}.json"
    (folder / name).write_text(json.dumps(found))


def test_the_newest_record_counts_and_of_one_day_the_largest_machine(folder: Path) -> None:
    for date, gpus in (("2026-02-01", 2), ("2026-02-02", 1), ("2026-02-02", 4), ("2026-01-01", 8)):
        save(folder, record("jacobi", date, gpus, []))
    assert [len(found["about"]["gpus"]) for found in records.records("jacobi")] == [4, 1, 2, 8]


def test_what_the_newest_lacks_comes_from_the_next_and_says_so(folder: Path) -> None:
    save(folder, record("jacobi", "2026-02-02", 4, [row("strong peer", 1, 3400.0), row("strong overlap", 1, 3300.0)]))
    save(folder, record("jacobi", "2026-02-01", 8, [row("strong peer", 1, 1.0), row("strong peer", 8, 17218.0)]))
    text = gpu.gpu().splitlines()
    assert "4 × H200, 2026-02-02, commit abcdef0" in text[0]
    assert "| peergrid, eight steps per pass | 3,400 | – | – | 17,218 2) |" in text
    assert "| times as fast, eight steps against one | 10.0 |  |  | 10.0 |" in text
    assert "2) 8 × H200, 2026-02-01, commit abcdef0, `c`  " in text


def test_what_is_held_is_no_part_of_the_rates(folder: Path) -> None:
    rows = [row(series, 1, rate) for series, rate in (("weak overlap", 3400.0), ("weak, held", 3500.0))]
    save(folder, record("jacobi", "2026-02-02", 2, rows))
    assert "| peergrid, eight steps per pass, 17408² for each GPU | 3,400 |" in gpu.gpu()


def test_small_grids_are_shown_on_the_most_gpus(folder: Path) -> None:
    for date, gpus in (("2026-02-02", 2), ("2026-02-01", 4)):
        rows = [
            row(series, count, 1.0, seconds_per_step=1e-6 * count, options={"depth": depth})
            for series, depth in SMALL.items()
            for count in (1, gpus)
            if gpus == 2 or depth == 8  # the larger machine's record was cut off
        ]
        save(folder, record("small", date, gpus, rows))
    tiny, small, *_ = gpu.more().splitlines()
    assert "4.00 µs on 4 with an exchange after eight (4 × H200, 2026-02-01" in tiny
    assert "2.00 µs on 2 with an exchange after every one (2 × H200, 2026-02-02" in tiny
    assert small.startswith("- 4096² cells on 4 GPUs: 4.00 µs a step")


def test_the_ladder_shows_every_strategy_on_every_problem(folder: Path) -> None:
    assert gpu.ladder() == ""
    rows = [
        row(f"{base}: {way}", count, 1.0, base=base, efficiency=share, shape=[8, 16])
        for base in ("radar, wide", "Jacobi")
        for way, count, share in (("serial", 1, 0.9), ("serial", 2, 0.85), ("peer", 1, 1.0), ("peer", 2, 0.991))
    ]
    save(folder, record("ladder", "2026-02-02", 2, rows))
    text = gpu.ladder().splitlines()
    assert text[2] == "| strategy | radar, wide, 8 × 16 | Jacobi, 8 × 16 |"
    assert text[4:] == ["| serial | 85.0% | 85.0% |", "| peer | 99.1% | 99.1% |"]


def test_stencils_of_ones_own(folder: Path) -> None:
    assert gpu.own() == ""
    rows = [
        row("waves: shipped", 1, 900.0, against=1.0, spread=0.01),
        row("waves: own", 1, 891.0, against=0.99, spread=0.02),
    ]
    save(folder, record("own", "2026-02-02", 1, rows))
    assert gpu.own().splitlines()[-1] == "| waves: own | 1 | 891 | 99.0% | 2.0% |"


def test_problems_of_many_kinds(folder: Path) -> None:
    def measured(problem: str, devices: str, asked: str, rate: float) -> Found:
        shares = {"gcells_per_s": rate, "of_one_pass": rate * 8e-3 / 4, "bytes": 8}
        return {"problem": problem, "devices": devices, "asked": asked, **shares}

    rows = [
        measured("heat 512³", "cuda:0", "one step per pass", 400.0),
        measured("heat 512³", "cuda:0", "what suits", 1200.0),
        {"problem": "heat 512³", "devices": "cuda:0", "depth": 9, "error": "No kernel makes so many."},
        measured("D2Q9 4096²", "cuda:0", "what suits", 60.0),
        measured("D2Q9 4096²", "cuda:0,1", "what suits", 117.0),
    ]
    for date, count in (("2026-01-01", 1), ("2026-02-01", 5)):
        found = record("breadth", date, 2, rows[:count])
        (folder / f"h200-x{count}-breadth.json").write_text(json.dumps(found))
    lines = breadth(folder).splitlines()
    assert "2026-02-01" in lines[0]
    assert lines[4:] == [
        "| heat, 7 points, 512³ | 8 | 400.0 | 80% | 1,200.0 |  |",
        "| lattice Boltzmann D2Q9, periodic, 4096² | 8 |  |  | 60.0 | 97.5% |",
    ]
    assert breadth(folder / "none") == ""


def test_the_headline_compares_like_with_like(folder: Path) -> None:
    """One step per pass with one step per pass, and several apart."""
    for name in ("fdtd_cpu", "waves_cpu"):
        (folder / f"{name}.json").write_text((records.ROOT / "benchmarks/results" / f"{name}.json").read_text())
    rates = (("strong, one step", 1, 510.0), ("strong peer", 1, 3400.0), ("strong, one step", 8, 3444.0))
    save(folder, record("jacobi", "2026-02-02", 8, [row(*rate) for rate in (*rates, ("strong peer", 8, 17220.0))]))
    alone, eight, radar, waves = headline().splitlines()[2:6]
    assert alone.endswith("| 510 (1.5 ×) | 3,400 (10 ×) |")
    assert eight.endswith("| 3,444 (2.0 ×) | 17,220 (10 ×) |")
    for program, text in (("gprMax", radar), ("Devito", waves)):
        found = re.search(rf"\| {program}: ([\d,]+) Mcells/s \| ([\d,]+) \(([\d.]+) ×\) \|", text)
        assert found, text
        theirs, ours, times = (float(number.replace(",", "")) for number in found.groups())
        assert times == pytest.approx(ours / theirs, rel=0.03)


def test_forecasts_are_told_by_problem_and_depth(tmp_path: Path) -> None:
    assert forecasts(tmp_path) == ""
    row = {"problem": "Jacobi", "shape": [64, 64], "gpus": 1}
    rows = [{**row, "depth": depth, "error": error} for depth, error in ((1, -0.1), (1, 0.3), (8, 0.05))]
    choices = dict.fromkeys(("within_3_percent", "within_3_percent_after_trial"), 0.5) | {
        "worst_after_trial": 0.04,
        "tried": 5,
    }
    found = {"about": record("forecasts", "2026-11-23", 1, [])["about"], "cases": 3, "median_error": 0.1, "rows": rows}
    found |= {"within_25_percent": 2 / 3, "choices": choices | {"cases": 1}, "seconds_to_choose": 0.3}
    found["memory"] = [{"error": -0.012}]
    (tmp_path / RECORD).write_text(json.dumps(found))
    text = forecasts(tmp_path)
    assert "| Jacobi | 1 | 64 × 64 | 20% | 5% |" in text
    assert "the median error is 10.0%, 67% are within 25 %" in text
    assert "the last calibration did not use" in text
    (tmp_path / RECORD).write_text(json.dumps({**found, "foretold_before": 3}))
    assert "each predicted before it was measured" in forecasts(tmp_path)
    assert "within 1.2% of what the driver" in text
