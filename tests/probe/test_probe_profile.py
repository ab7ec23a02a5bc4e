"""The profile on disk: whole or not at all, and one sentence for every kind of bad file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from probe_examples import number, profile

from peergrid.errors import UsageError
from peergrid.probe import profile as profiles


def test_written_and_read_back(tmp_path: Path) -> None:
    found = profile(number("host_copy_bandwidth", 1e10, threads=2), gpus=2)
    profiles.write(tmp_path / "p.json", found)
    assert profiles.read(tmp_path / "p.json") == found
    assert os.listdir(tmp_path) == ["p.json"]


def test_find_by_part_of_the_coordinates() -> None:
    found = profile(number("q", 1.0, threads=1, kind="a"), number("q", 2.0, threads=2, kind="a"))
    hit = found.find("q", {"threads": 2})
    assert hit is not None
    assert hit.median == 2.0
    assert found.find("q", {"threads": 3}) is None
    assert [item.median for item in found.results("q")] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "pee', "'p.json' should be a profile in JSON, but is damaged at line 1: measure it again."),
        (
            '{"what": 1}',
            '\'p.json\' should say "format": "peergrid-profile", but does not: give a file that peergrid probe wrote.',
        ),
        (
            '{"format": "peergrid-profile", "version": 99}',
            "'p.json' has version 99 of the profile, but this peergrid reads version 1: "
            "update peergrid or measure again.",
        ),
        (
            '{"format": "peergrid-profile", "version": 1}',
            "'p.json' should hold an entry 'created', but holds none: measure the profile again.",
        ),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    place = tmp_path / "p.json"
    place.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        profiles.read(place)
    assert str(error.value) == message
    with pytest.raises(UsageError) as refused:
        profiles.write(place, profile())
    assert "holds something else" in str(refused.value)
    assert place.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": "peergrid-profile", "version": ' + "1" * 5000 + "}"])
def test_nesting_and_integers_beyond_reason(text: str) -> None:
    with pytest.raises(UsageError, match="is damaged: measure it again"):
        profiles.loads(text, "p.json")


def test_an_integer_that_is_no_float_is_named() -> None:
    data = json.loads(profiles.dumps(profile(number("q", 1.0))))
    data["probes"][0]["results"][0]["median"] = 10**400
    with pytest.raises(UsageError, match=r"results\[0\].median should hold a number"):
        profiles.loads(json.dumps(data), "p.json")


def test_a_file_cut_off_anywhere_is_refused() -> None:
    whole = profiles.dumps(profile(number("q", 1.0)))
    for end in range(0, len(whole) - 2, 7):
        with pytest.raises(UsageError):
            profiles.loads(whole[:end], "p.json")


def test_a_wrong_number_is_named(tmp_path: Path) -> None:
    data = json.loads(profiles.dumps(profile(number("q", 1.0))))
    data["probes"][0]["results"][0]["median"] = "fast"
    with pytest.raises(UsageError) as error:
        profiles.loads(json.dumps(data), "p.json")
    assert str(error.value) == (
        "'p.json'.probes[0].results[0].median should hold a number, but holds 'fast': measure the profile again."
    )


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give an existing file"):
        profiles.read(tmp_path / "none.json")
    with pytest.raises(UsageError, match="create it"):
        profiles.write(tmp_path / "none" / "p.json", profile())


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not text"):
        profiles.read(tmp_path / "p.json")


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "p.json"
    profiles.write(place, profile(number("q", 1.0)))
    before = place.read_bytes()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="No space"):
        profiles.write(place, profile(number("q", 2.0)))
    assert place.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.json"]


def test_what_is_no_file_is_not_read() -> None:
    with pytest.raises(UsageError, match=r"'/dev/zero' should be a profile, .* \(it is no plain file\)"):
        profiles.read(Path("/dev/zero"))
