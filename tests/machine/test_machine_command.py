"""`peergrid machine` on whatever machine the tests run on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peergrid.cli.machine import machine
from peergrid.errors import UsageError
from peergrid.machine import Machine, decode


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    machine(as_json=True)
    found = decode(Machine, json.loads(capsys.readouterr().out))
    assert found.cpu.threads >= 1
    assert found.gpus or found.missing


def test_text_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine(svg=tmp_path / "m.svg")
    assert "NUMA node 0" in capsys.readouterr().out
    assert (tmp_path / "m.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="create it first"):
        machine(svg=tmp_path / "none" / "m.svg")


def test_a_picture_replaces_nothing_but_a_picture(tmp_path: Path) -> None:
    place = tmp_path / "m.svg"
    place.write_text("my notes")
    with pytest.raises(UsageError) as error:
        machine(svg=place)
    assert str(error.value) == (
        f"'{place}' should be free or a picture to replace, but holds something else: choose another name or remove it."
    )
    assert place.read_text() == "my notes"
    place.write_text("<svg>old</svg>")
    machine(svg=place)
    assert "NUMA node 0" in place.read_text(encoding="utf-8")
