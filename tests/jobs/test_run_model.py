"""A model run from Python: the files of the command line, and what is in them in SI units."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.cli import main
from peergrid.errors import UsageError
from peergrid.jobs import run_model, run_survey
from peergrid.models import parse

PAGE = (Path(__file__).parents[2] / "docs" / "model-files.md").read_text(encoding="utf-8")
MODEL = """
[grid]
size = [0.3, 0.2]
spacing = 0.01
steps = 30
[[source]]
kind = "line"
position = [0.15, 0.1]
waveform = { kind = "ricker", frequency = 6e8 }
[[receiver]]
position = [0.2, 0.1]
fields = ["Ez", "Hy"]
[absorber]
cells = 5
[output]
snapshots = 10
pictures = false
[run]
devices = "cpu:1"
"""


def nameless(folder: Path) -> int:
    """Bytes on the disk of the files without a name that this process has open in a folder."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            opened = f"/proc/self/fd/{number}"
            if Path(os.readlink(opened)).parent == folder and not os.stat(opened).st_nlink:
                found += 512 * os.stat(opened).st_blocks
    return found


@pytest.mark.filterwarnings("ignore:.* at its strongest after")
def test_snapshots_leave_room_for_the_results(tmp_path: Path) -> None:
    """A disk that is full of snapshots would have no room for the traces."""
    small = parse(MODEL)
    rooms: list[int] = []
    run_model(small, tmp_path, call=lambda run: rooms.append(nameless(tmp_path)))
    assert min(rooms) >= (tmp_path / "results.h5").stat().st_size
    assert nameless(tmp_path) == 0
    short = rooms.pop()
    rooms.clear()
    run_model(small.with_steps(3000), tmp_path, call=lambda run: rooms.append(nameless(tmp_path)), checkpoint="1h")
    assert min(rooms) >= short + 2 * 4 * (3000 - 30), "of two traces in single precision"


def test_a_program_gets_what_the_command_line_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.toml").write_text(MODEL)
    monkeypatch.setattr(sys, "argv", ["peergrid", "run", "model.toml", "-o", "line", "--devices", "cpu:2"])
    with pytest.raises(SystemExit):
        main()
    steps: list[int] = []
    with pytest.warns(UserWarning, match="at its strongest after"):
        result = run_model("model.toml", "program", call=lambda run: steps.append(run.step))
    assert steps[-1] == result.steps == 30
    assert repr(result).startswith("ModelResult: Ez 31×21 float32, Hx 31×21 float32, Hy 31×21 float32; 2 traces; 30 ")
    assert [path.name for path in result.outputs] == ["results.h5", "snapshots.h5"]
    with h5py.File("line/results.h5") as line, h5py.File("program/results.h5") as program:
        assert program.attrs["devices"] == "cpu:1"
        assert line.attrs["sha256"] == program.attrs["sha256"] == result.sha256
        for name in ("Ez", "Hy"):
            assert np.array_equal(result.traces[f"rx1.{name}"], line[f"rxs/rx1/{name}"][1:])
            assert np.array_equal(result.fields[name], line[f"fields/{name}"][:])
            assert result.fields[name].any()
        assert result.times[0] == line.attrs["dt"]
        assert len(result.times) + 1 == line.attrs["Iterations"] == 31
    with h5py.File("line/snapshots.h5") as line, h5py.File("program/snapshots.h5") as program:
        assert np.array_equal(line["Ez"][:], program["Ez"][:])


@pytest.mark.filterwarnings("ignore:source:UserWarning")  # the pulse is not over when so short a run ends
def test_a_program_goes_on_where_another_ended(tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    def end(run: object) -> None:
        if getattr(run, "step", 0) >= 20:
            raise Ended

    model = parse(MODEL)
    whole = run_model(model)
    with pytest.raises(Ended):
        run_model(model, tmp_path, checkpoint="10steps", call=end)
    with pytest.raises(UsageError, match="is expected to hold no checkpoints where a run begins"):
        run_model(model, tmp_path, checkpoint="10steps")
    there = sorted(tmp_path.glob("checkpoints/*.h5"))
    run_model(model, tmp_path)
    assert sorted(tmp_path.glob("checkpoints/*.h5")) == there, "a run without checkpoints removes none"
    seen: list[int] = []
    result = run_model(model, tmp_path, resume=True, call=lambda run: seen.append(run.step))
    assert seen[0] > 10
    assert result.sha256 == whole.sha256
    assert np.array_equal(result.traces["rx1.Ez"], whole.traces["rx1.Ez"])
    assert not (tmp_path / "checkpoints").exists()
    with pytest.raises(
        UsageError, match=r"^Checkpoints are written to the folder of the results; give 'folder' too\.$"
    ):
        run_model(model, resume=True)


def test_the_example_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (shortest, *_), code = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("toml", "python"))
    Path("model.toml").write_text(
        shortest.replace("spacing = 0.005", "spacing = 0.01") + "[output]\npictures = false\n"
    )
    exec("\n".join(code), found := {})
    assert found["pulse"].max() > 0
    assert found["found"].traces["rx1.Ez"].max() > 0


def test_a_survey_from_a_program(tmp_path: Path) -> None:
    survey = '[survey]\nkind = "common_offset"\ntraces = 2\nstep = [0.02, 0.0]\n'
    (tmp_path / "model.toml").write_text(MODEL.replace("snapshots = 10", "snapshots = 0") + survey)
    found = run_survey(tmp_path / "model.toml", tmp_path / "out", devices="cpu:1")
    assert found.traces == 2
    with h5py.File(found.outputs[0]) as file:
        assert file["rxs/rx1/Hy"].shape == (31, 2)
        assert file.attrs["sha256"] == found.sha256
    with pytest.raises(UsageError, match=r"^A model with a table \[survey\] is expected, got one without; "):
        run_survey(parse(MODEL), tmp_path)


@pytest.mark.filterwarnings("ignore:source:UserWarning")
def test_a_survey_that_is_run_as_one_model_is_said() -> None:
    survey = "\n[survey]\nkind = 'common_offset'\ntraces = 3\nstep = [0.05, 0.0]\n"
    with pytest.warns(UserWarning, match=r"^The model has a survey of 3 traces; run_survey runs them\.$"):
        run_model(parse(MODEL + survey), devices="cpu:1")
