"""The tools around the experiments: bad input is one sentence, before anything is measured."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def exit_code(name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> object:
    """How a tool ends, run in this process."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(TOOLS / name), run_name="__main__")
    return end.value.code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gpu_probe", "lanch", "-o", "out"), "did you mean 'launch'"),
        (("gpu_probe", "-o", "notes"), "'notes' should be a folder, but is not (File exists)"),
        (("gpu_probe", "-o", "out", "--reference", "notes"), "'notes' should be a program that prints its figures"),
        (("gpu_probe", "-o", "."), "'profile.json' should be free or a profile to replace"),
        (("spread_check", "lanch", "-o", "s.json"), "did you mean 'launch'"),
        (("spread_check", "-o", "none/s.json"), "'none/s.json' should lie in an existing folder"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("my notes")
    (tmp_path / "profile.json").write_text("{}")
    assert exit_code(arguments[0], arguments[1:], monkeypatch) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert (tmp_path / "notes").read_text() == "my notes"
    assert (tmp_path / "profile.json").read_text() == "{}"


def test_a_profile_stands_beside_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nopen('told', 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        """print('[{"quantity": "host_start", "at": {"how": "call"}, "median": %d}]' % os.path.getsize("told"))\n"""
    )
    program.chmod(0o755)
    arguments = ("host-start", "host-flag", "--quick", "--reference", "program", "-o", "out")
    assert exit_code("gpu_probe", arguments, monkeypatch) == 0
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["host-start host-flag"] + ["host-start"] * 6, "once to see what it has, then what both have"
    (beside,) = json.loads((tmp_path / "out" / "beside-profile-quick.json").read_text())
    assert beside["processes"] == [21, 32, 43, 54, 65, 76, 87]
    assert len(beside["our_processes"]) == 7
    assert beside["off"] == pytest.approx(beside["ours"] / 54 - 1)
