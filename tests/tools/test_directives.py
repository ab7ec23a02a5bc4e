"""The program with directives in examples/directives: the same bits as peergrid's, and sentences for wrong calls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]

import directives  # noqa: E402
from directives import Directives, Line, compared, problem  # noqa: E402

import peergrid  # noqa: E402


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Directives:
    return Directives.build(tmp_path_factory.mktemp("directives"))


@pytest.fixture(scope="module")
def first() -> Line:
    return np.random.default_rng(3).random(97, dtype=np.float32)


def test_a_program_beside_the_sources_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page tells to make one there."""
    sources = tmp_path / "sources"
    shutil.copytree(directives.SOURCES, sources)
    subprocess.run(["make", "-s", "-C", sources], check=True)
    monkeypatch.setattr(directives, "SOURCES", sources)
    (tmp_path / "built").mkdir()
    assert Directives.build(tmp_path / "built").program.is_file()


@pytest.mark.parametrize("devices", [1, 2, 3, 5])
@pytest.mark.parametrize("steps", [0, 1, 8])
def test_directives_leave_the_bits_of_peergrid(program: Directives, first: Line, devices: int, steps: int) -> None:
    last, kind, seconds = program.run(first, devices, steps)
    expected = peergrid.run(problem(first), steps, devices="cpu:2").fields["u"] if steps else first
    assert last.tobytes() == expected.tobytes()
    assert kind in ("cpu", "gpu")
    assert seconds >= 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["2"], "usage: three_points DEVICES STEPS FIRST LAST"),
        (["1", "1", "nowhere", "last"], "three_points: no file can be read at 'nowhere'."),
        (["96", "1", "first", "last"], "three_points: there are not enough cells for every device in 'first'."),
        (["1", "1", "first", "no/last"], "three_points: the values cannot be written to 'no/last'."),
    ],
)
def test_a_wrong_call_ends_with_a_sentence(
    program: Directives, first: Line, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    first.tofile(tmp_path / "first")
    done = subprocess.run([program.program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"{sentence}\n")


def test_a_program_that_does_not_end_is_left(first: Line, tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 60\n")
    endless.chmod(0o755)
    found = compared(Directives(endless), first, "cpu:1", 2, 2, 0.1)
    assert found["directives"] == "did not end within 0.1 s"
    assert set(found["gcells_per_second"]) == {"one step per pass", "several"}
    assert not found["same_bits"]
