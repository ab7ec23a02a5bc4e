"""How far forecasts are from what was measured, on cases that were used for no calibration."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from figures.records import RESULTS, Found, load, table, when, where

RECORD = "h200-forecasts.json"
CLEAN = "that no calibration used, each predicted before it was measured:"
OLD = "that the last calibration did not use:"


def forecasts(folder: Path | None = None) -> str:
    """A table of errors by problem and depth; nothing where there is no record."""
    path = (folder or RESULTS) / RECORD
    if not path.exists():
        return ""
    record: Found = json.loads(path.read_text())
    choices, memory = record["choices"], record["memory"]
    worst = max(abs(row["error"]) for row in memory)
    heads = ["problem", "GPUs", "cells", "one step per exchange", "several"]
    trial, worst_chosen = choices["within_3_percent_after_trial"], choices["worst_after_trial"]
    usual = record.get("median_seconds_to_choose", record["seconds_to_choose"])
    clean = record.get("foretold_before", 0) >= record["cases"]
    within, chosen = record["within_25_percent"], record["seconds_to_choose"]
    lines = [
        f"**Forecasts of the time of a step** ({when(record)}), {record['cases']} cases of sizes",
        CLEAN if clean else OLD,
        f"the median error is {record['median_error']:.1%}, {within:.0%} are within 25 %.",
        "",
        *table(heads, _rows(record["rows"])),
        "",
        "Each figure is the median error over the strategies. The arrangement with the shortest predicted time is",
        f"within 3 % of the best of all measured on {choices['within_3_percent']:.0%} of {choices['cases']} grids. The",
        f"best of the {choices['tried']} arrangements that a trial tries is so on {trial:.0%}, and never more than "
        f"{worst_chosen:.1%} slower.",
        f"The choice takes {usual:.2g} s, at most {chosen:.2g} s.",
        f"Predicted memory is within {worst:.1%} of what the driver",
        f"reports ({len(memory)} runs of 64 MiB and more).",
    ]
    return "\n".join(lines)


def accuracy() -> str:
    """The errors of forecasts in a sentence."""
    record = load("h200-forecasts")
    errors = [abs(row["error"]) for row in record["rows"]]
    return (
        f"Of {len(errors)} steps of radar, Jacobi, heat and acoustic waves, predicted before they were measured on one "
        f"and two H200s, the median error is {median(errors):.1%}, and "
        f"{sum(error <= 0.25 for error in errors) / len(errors):.0%} are within 25 % ({when(record)})."
    )


def foretold() -> str:
    """The same for each kind of problem, and what it takes to choose."""
    record, virtual, choosing = load("h200-forecasts"), load("cpu-forecasts"), load("choosing")
    later, chosen = load("h200-x1-forecasts"), load("h200-x1-chosen")
    rows: list[Found] = record["rows"]
    heads = ["", "cases", "median error", "within 25 %"]
    kinds = {name: [row for row in rows if row["problem"] == name] for name in sorted({r["problem"] for r in rows})}
    found = [_share(name, kind) for name, kind in kinds.items()]
    choices, spent = choosing["choices"]["found"]["choices"], [row["seconds"] for row in choosing["seconds"]["found"]]
    plans = max(row["seconds"] for row in choosing["plans"]["found"])
    lines = [
        f"Times of a step, predicted and then measured ({when(record)}): every strategy, one step per exchange and",
        "several, 512² to 16384² cells and as many in 3D. No calibration used these cases. The last row is for virtual",
        f"devices ({where(virtual)}).",
        "",
        *table(
            heads,
            [
                *found,
                _share("1 and 2 H200s", rows),
                _share(
                    f"1 H200, again ({later['about']['date']}, commit {later['about']['commit'][:7]})", later["rows"]
                ),
                _share("2 virtual devices", virtual["rows"]),
            ],
        ),
        "",
        f"A run tries the {choices['tried']} arrangements with the shortest predicted times. The best of these is",
        f"within 3 % of the best of all on {choices['within_3_percent_after_trial']:.0%} of {choices['cases']} grids, "
        f"and never more than {choices['worst_after_trial']:.1%} slower.",
        f"The choices of complete runs on one H200, with their trials ({when(chosen)}),",
        f"are within {chosen['worst']:.1%} of the best on all {len(chosen['rows'])} grids. A choice takes "
        f"{median(row['seconds'] for row in chosen['rows']):.2g} s, at most",
        f"{chosen['most_seconds']:.2g} s, with kernels that an earlier run compiled. Without a trial it takes "
        f"{median(spent):.2g} s, at most {max(spent):.2g} s,",
        f"and `peergrid plan` takes at most {plans:.2g} s",
        f"({where(choosing['seconds'])}).",
    ]
    return "\n".join(lines)


def _share(name: str, rows: list[Found]) -> list[str]:
    errors = [abs(row["error"]) for row in rows]
    return [name, str(len(errors)), f"{median(errors):.1%}", f"{sum(e <= 0.25 for e in errors) / len(errors):.0%}"]


def cpu_forecasts() -> str:
    """The same of two virtual devices."""
    record = load("cpu-forecasts")
    lines = [
        f"**On two virtual devices** ({where(record)}), {record['cases']} cases: the median error is "
        f"{record['median_error']:.1%}.",
        "",
        *table(
            ["problem", "cells", "one step per exchange", "several"],
            (row[:1] + row[2:] for row in _rows(record["rows"])),
        ),
    ]
    return "\n".join(lines)


EIGHT = (  # the suite, a word for its grid, and what its series begin with
    ("jacobi", "Jacobi, 17408²", "strong, one step"),
    ("jacobi", "the same, several steps per pass", "strong "),
    ("jacobi", "the same, norm of every step", "strong, norm"),
    ("jacobi", "Jacobi, 17408² for each GPU", "weak overlap"),
    ("fdtd", "radar, 16384²", "large radar"),
    ("small", "Jacobi, 4096²", "4096²"),
    ("small", "Jacobi, 256² for each GPU", "256² each"),
)


def eight() -> str:
    """Forecasts for eight H200s beside the measurements of earlier commits."""
    told = {name: load(f"h200-x8-{name}-foretold") for name in ("jacobi", "fdtd", "small")}
    known = {name: load(f"h200-x8-{name}") for name in told}
    rows = []
    for suite, grid, start in EIGHT:
        (way, seconds, cells), before = _least(told[suite], start), _least(known[suite], start)
        figures = f"{seconds * 1e6:.3g}", f"{cells / seconds / 1e9:,.0f}", f"{before[1] * 1e6:.3g}"
        rows.append([grid, way, *figures])
    about, then = told["jacobi"]["about"], known["jacobi"]["about"]
    heads = ["", "fastest", "µs per step, predicted", "GCells/s, predicted", "µs per step, measured earlier"]
    return "\n".join(
        [
            f"**Forecasts for eight H200s** ({about['date']}, commit {about['commit'][:7]}, `{about['command']}`)",
            f"beside earlier measurements ({then['date']}, commit {then['commit'][:7]}):",
            "",
            *table(heads, rows),
        ]
    )


def _least(record: Found, start: str) -> tuple[str, float, int]:
    """Strategy, seconds of a step and cells of the fastest row on eight GPUs whose series begins so."""
    rows = [row for row in record["rows"] if row["count"] == 8 and row["series"].startswith(start)]
    plain = [row for row in rows if start != "strong " or "," not in row["series"]]
    row = min(plain, key=lambda row: row["seconds_per_step"])
    return row["options"]["strategy"], row["seconds_per_step"], row["shape"][0] * row["shape"][1]


def _rows(rows: list[Found]) -> list[list[str]]:
    found = []
    kinds = sorted({(row["problem"], row.get("gpus", 1), tuple(row["shape"])) for row in rows})
    for problem, gpus, shape in kinds:
        mine = [
            row for row in rows if (row["problem"], row.get("gpus", 1), tuple(row["shape"])) == (problem, gpus, shape)
        ]
        once = [abs(row["error"]) for row in mine if row["depth"] == 1]
        several = [abs(row["error"]) for row in mine if row["depth"] > 1]
        figures = (f"{median(part):.0%}" if part else "" for part in (once, several))
        found.append([problem, str(gpus), " × ".join(map(str, shape)), *figures])
    return found
