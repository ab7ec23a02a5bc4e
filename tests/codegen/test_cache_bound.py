"""The folder of compiled code is kept within a bound, and cleared of nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from peergrid.cli import app
from peergrid.codegen.cache import clear, entries, keep_within, usage


def module(folder: Path, name: str, used: float, size: int = 100) -> None:
    """Machine code that was last used at a time."""
    file = folder / f"{name}.o"
    file.write_bytes(bytes(size))
    os.utime(file, (used, used))


def names(folder: Path) -> set[str]:
    return {one.file.stem for one in entries(folder)}


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for number, name in enumerate(("d", "b", "c", "a")):
        module(tmp_path, f"peergrid_rows_{name}", used=number + 1)
    keep_within(tmp_path, most=400)
    assert len(names(tmp_path)) == 4
    keep_within(tmp_path, most=350)
    assert names(tmp_path) == {"peergrid_rows_c", "peergrid_rows_a"}


def test_clearing_leaves_what_is_not_ours(tmp_path: Path) -> None:
    module(tmp_path, "peergrid_rows_a", used=1)
    (tmp_path / "__pycache__").mkdir()
    module(tmp_path / "__pycache__", "peergrid_rows_of_an_older_version", used=1, size=10)
    (tmp_path / "cubin" / "trials").mkdir(parents=True)
    (tmp_path / "cubin" / "trials" / "one.json").write_text("{}")
    (tmp_path / "letter.txt").write_text("mine")
    found = usage(tmp_path)
    assert (found.processor_modules, found.processor_bytes, found.gpu_files) == (2, 110, 1)
    clear(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_the_command_shows_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "peergrid").mkdir()
    module(tmp_path / "peergrid", "peergrid_rows_a", used=1)
    app(["cache"], standalone_mode=False)
    assert "100 B in 1 modules" in capsys.readouterr().out
    app(["cache", "--clear", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["processor_bytes"] == 0
