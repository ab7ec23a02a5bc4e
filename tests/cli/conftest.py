"""The command line called as a user does, but in this process where possible."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_call import MODEL, Answer, Call

from peergrid.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(MODEL)
    return path


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    def answer(*arguments: object) -> Answer:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["peergrid", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = int(done.code or 0)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return answer
