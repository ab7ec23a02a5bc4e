"""Every broken model file in broken_models.toml gives its one sentence, with the name of the file in front."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from peergrid.errors import UsageError
from peergrid.models.fdtd import build
from peergrid.models.modelfile import parse, read

CASES = tomllib.loads(Path(__file__).with_name("broken_models.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_broken_model_gives_its_sentence(case: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        build(parse(case["text"]))
    assert str(caught.value) == case["sentence"]
    assert caught.value.exit_code == 2


def test_there_are_more_than_forty_and_their_names_differ() -> None:
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names) > 40


def test_the_sentence_starts_with_the_name_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[grid]\nsteps = 0\n")
    with pytest.raises(UsageError, match=r"^bad\.toml: grid\.size is expected to be a list of 2"):
        read(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "none.toml")
    expected = f"none.toml: A model file is expected at '{tmp_path / 'none.toml'}', got: No such file or directory"
    assert str(caught.value) == f"{expected}; check the path."


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "bytes.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError) as caught:
        read(file)
    assert str(caught.value) == (
        "bytes.toml: A model file is expected to be UTF-8 text, got other bytes; save it as UTF-8."
    )
