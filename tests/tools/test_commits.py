"""Two versions of the sources beside each other: `benchmarks/cuda/commits.py`, on virtual devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_versions_are_measured_in_turns(tmp_path: Path) -> None:
    """The same sources twice: samples of both, of equal lengths, and a name of each version."""
    script, record = ROOT / "benchmarks" / "cuda" / "commits.py", tmp_path / "commits.json"
    chosen = ["--suites", "jacobi", "--only", "strong", "--without", "graph,peer,norm", "--counts", "1"]
    ways = ["--kind", "cpu", "--rounds", "2", "--sample", "0.001", "--out", record]
    subprocess.run([sys.executable, script, "--before", ROOT, *chosen, *ways], check=True, timeout=120)
    found = json.loads(record.read_text())
    assert found["not_reached"] == 0
    assert found["commits"]["before"] == found["commits"]["after"]
    assert [row["series"] for row in found["rows"]] == ["strong overlap", "strong, one step"]
    for row in found["rows"]:
        assert row["steps"] % row["after"]["period"] == 0
        assert [len(row[name]["samples"]) for name in ("before", "after")] == [2, 2]
        assert row["rate_of_before"] > 0
