"""What `tools/gpu_check` asks of `peergrid bench` and of other benchmarks, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_checks import bench
from gpu_checks import work as section
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


def test_benchmarks_whose_bits_differ_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, list[dict[str, object]]] = {
        "one": [{"same_bits": True}],
        "several": [{"columns": "anywhere", "sha256": ["a", "a"]}, {"columns": "near", "sha256": ["b"]}],
    }

    def answer(command: list[str], limit: float) -> Ended:
        Path(command[-1]).write_text(json.dumps({"dtype": "float32", **rows}))
        return Ended(0, "", "", limit)

    monkeypatch.setattr(section, "call", answer)
    assert section.measured("sparse", tmp_path) == {"rows": {"one": 1, "several": 2}}
    rows["one"][0]["same_bits"] = False
    rows["several"][1] = {"columns": "anywhere", "sha256": ["b"]}
    with pytest.raises(AssertionError, match=r"one: .*anywhere: 2 digests"):
        section.measured("sparse", tmp_path)
