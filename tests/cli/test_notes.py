"""Where a command says what it did otherwise than one may expect."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_call import Call

from peergrid.simulate import Simulation

NOTE = "Halos go through host memory."


@pytest.mark.parametrize("command", ["run", "plan", "trace"])
def test_notes_go_to_standard_error(command: str, call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simulation, "notes", (NOTE,))
    plain = call(command, model, "--devices", "cpu:1")
    assert plain.err.splitlines()[-1] == f"note: {NOTE}"
    assert NOTE not in plain.out
    answer = call(command, model, "--devices", "cpu:1", "--json")
    assert answer.json["notes"] == [NOTE]
    assert answer.err.splitlines()[-1] == f"note: {NOTE}"
