"""What `tools/gpu_check` asks of `peergrid bench`, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_checks import bench
from gpu_checks.call import Ended


def test_suites_are_measured_on_the_counts_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def answer(*words: str, limit: float) -> Ended:
        asked.append(words)
        (tmp_path / "small.json").write_text(json.dumps({"rows": [{"series": "256²", "gcells_per_s": 123.45}]}))
        return Ended(0, "", "", limit)

    monkeypatch.setattr(bench, "peergrid", answer)
    assert bench.suite("small", [1, 4], tmp_path) == {"cases": 1, "best": "256²", "gcells_per_s": 123.5}
    devices = ("--devices", "cuda:0,1,2,3", "--counts", "1,4")
    assert asked == [("bench", "small", *devices, "-o", str(tmp_path))]
