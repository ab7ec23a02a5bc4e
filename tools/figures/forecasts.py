"""How far forecasts are from what was measured, on cases that were used for no calibration."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from figures.records import RESULTS, Found, load, table, when, where

RECORD = "h200-forecasts.json"
CLEAN, OLD = "no calibration used, foretold before anything was measured:", "the last calibration did not use:"


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
        f"**Forecasts of the time of a step** ({when(record)}), {record['cases']} cases of sizes that",
        CLEAN if clean else OLD,
        f"the median error is {record['median_error']:.1%}, {within:.0%} are within 25 %.",
        "",
        *table(heads, _rows(record["rows"])),
        "",
        "Each figure is the median error over the strategies. The arrangement that is foretold to be the fastest is",
        f"within 3 % of the best of all measured on {choices['within_3_percent']:.0%} of {choices['cases']} grids, the",
        f"best of the {choices['tried']} that a trial takes from it on {trial:.0%}, and never more than "
        f"{worst_chosen:.1%} slower.",
        f"Choosing takes {usual:.2g} s, at most {chosen:.2g} s.",
        f"Memory is foretold within {worst:.1%} of what the driver",
        f"reports ({len(memory)} runs of 64 MiB and more).",
    ]
    return "\n".join(lines)


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
