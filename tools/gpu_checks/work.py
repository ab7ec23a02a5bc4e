"""Work that is no stencil beside its peers: sparse products, reductions, binary variables, images, directives."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gpu_checks.call import ROOT, call
from gpu_checks.report import Case, Report

SCRIPTS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "sparse": ("cuda/sparse.py", ("--seconds", "100"), 200),
    "sparse-double": ("cuda/sparse.py", ("--dtype", "float64", "--seconds", "100"), 200),
    "reduction": ("cuda/reduction.py", ("--seconds", "60"), 120),
    "spins": ("cuda/spins.py", ("--seconds", "70"), 150),
    "images": ("cuda/images.py", (), 150),
}
"""The benchmark of each, its options, and the seconds it may take at most; it writes to the file of that name."""


def work(report: Report, counts: list[int]) -> None:
    """Every benchmark, on all GPUs that are there."""
    for name in SCRIPTS:
        report.run(name, partial(measured, name, report.path.parent))


def measured(name: str, out: Path) -> Case:
    """One benchmark; its rows are printed, its JSON lies beside the report. It fails where bits differ."""
    script, options, limit = SCRIPTS[name]
    file = out / f"{name}.json"
    done = call([sys.executable, str(ROOT / "benchmarks" / script), *options, "--out", str(file)], limit)
    print(done.out)
    found = json.loads(file.read_text()) if file.exists() else {}
    wrong = list(differing(found))
    if done.code != 0 or wrong:
        raise AssertionError(f"exit {done.code} after {done.seconds:.0f} s; other bits: {wrong}: {done.err[-1500:]}")
    return {"rows": {name: len(rows) for name, rows in found.items() if isinstance(rows, list)}}


def differing(found: dict[str, Any]) -> Iterator[str]:
    """The rows of a record that say of themselves, or of each other, that bits differ."""
    for name, rows in found.items():
        for row in rows if isinstance(rows, list) else ():
            if not (row.get("same_bits", True) and row.get("same_as_cpu", True)):
                yield f"{name}: {row}"
    digests: dict[str, set[str]] = {}
    for row in found.get("several", ()):
        digests.setdefault(row["columns"], set()).update(row.get("sha256", ()))
    yield from (f"{columns}: {len(seen)} digests" for columns, seen in digests.items() if len(seen) > 1)
