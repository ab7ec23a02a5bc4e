"""Recorded results: which there are, and which counts where several machines were measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
Found = dict[str, Any]


def load(name: str) -> Found:
    """A result by its name."""
    found: Found = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def records(suite: str, folder: Path | None = None) -> list[Found]:
    """What `peergrid bench SUITE` measured on machines with GPUs (`MACHINE-xCOUNT-SUITE.json`).

    The newest comes first, of one day the one with most GPUs.
    """
    found = [json.loads(path.read_text()) for path in sorted((folder or RESULTS).glob(f"*-x*-{suite}.json"))]
    ours = [record for record in found if record.get("benchmark") == suite]
    return sorted(ours, key=lambda record: (record["about"]["date"], len(record["about"]["gpus"])), reverse=True)


def where(found: Found) -> str:
    """The machine and the day of a result on CPUs."""
    hardware = found["hardware"]
    return f"{hardware['cpu']}, {hardware['cores']} cores, {found['date']}"


def when(record: Found) -> str:
    """Machine, day and commit of a result on GPUs."""
    about = record["about"]
    hardware = about["hardware"]
    if not isinstance(hardware, str):
        hardware = f"{hardware['gpus']}, {hardware['cpu']} ({hardware['cores']} cores)"
    commit = f", commit {about['commit'][:7]}" if about.get("commit") else ""
    return f"{hardware}, {about['date']}{commit}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def best(
    found: Sequence[Found], series: Callable[[str], bool], count: int, value: Callable[[Found], float]
) -> tuple[Found, Found] | None:
    """The first record that has some series on so many GPUs, and the best of these rows."""
    for record in found:
        rows = [row for row in record["rows"] if series(row["series"]) and row["count"] == count]
        if rows:
            return record, max(rows, key=value)
    return None
