"""`peergrid run --checkpoint` and `--resume`: a run that was cut off leaves the files of one that never was."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_call import MODEL, Call

LONG = MODEL.replace("steps = 30", "steps = 3000000")


def same_files(one: Path, two: Path) -> None:
    """Whether both hold the same datasets, to the bit."""
    with h5py.File(one) as first, h5py.File(two) as second:
        names: list[str] = []
        first.visit(names.append)
        others: list[str] = []
        second.visit(others.append)
        assert names == others
        for name in (name for name in names if isinstance(first[name], h5py.Dataset)):
            assert np.array_equal(first[name][()], second[name][()]), name


def started(folder: Path, model: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "peergrid", "run", str(model), "-o", "cut", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_checkpoints(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list((folder / "cut/checkpoints").glob("step-*.h5"))) < count and time.monotonic() < deadline:
        time.sleep(0.02)


def test_a_run_with_checkpoints_leaves_what_one_without_leaves(call: Call, model: Path, tmp_path: Path) -> None:
    plain = call("run", model, "-o", "plain", "--json").json
    kept = call("run", model, "-o", "kept", "--json", "--checkpoint", "7steps", "--devices", "cpu:2").json
    assert kept["sha256"] == plain["sha256"]
    assert sorted(os.listdir(tmp_path / "kept")) == ["results.h5", "snapshots.h5"], "checkpoints of a complete run go"
    for name in ("results.h5", "snapshots.h5"):
        same_files(tmp_path / "plain" / name, tmp_path / "kept" / name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_killed_goes_on_elsewhere(
    call: Call, model: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The killed run is one of far more steps: of the same model but for its end, whose signals are as long."""
    steps = 4000
    model.write_text(MODEL.replace("steps = 30", f"steps = {steps}").replace("snapshots = 10", "snapshots = 500"))
    plain = call("run", model, "-o", "plain", "--json").json
    process = started(tmp_path, model, "--checkpoint", "20steps", "--devices", "cpu:2", "--depth", "1")
    wait_for_checkpoints(tmp_path, 2)
    process.send_signal(number)
    process.communicate(timeout=60)
    again = call("run", model, "-o", "cut", "--resume", "--devices", "cpu:3", "--strategy", "peer", "--json")
    assert again.json["resumed_from"] > 0
    assert again.json["sha256"] == plain["sha256"]
    assert sorted(os.listdir(tmp_path / "cut")) == ["results.h5", "snapshots.h5"]
    for name in ("results.h5", "snapshots.h5"):
        same_files(tmp_path / "plain" / name, tmp_path / "cut" / name)


def cut_off(tmp_path: Path, model: Path) -> Path:
    """A folder with two checkpoints of a run that was killed."""
    model.write_text(LONG)
    process = started(tmp_path, model, "--checkpoint", "20steps", "--devices", "cpu:1")
    wait_for_checkpoints(tmp_path, 2)
    process.kill()
    process.communicate()
    return tmp_path / "cut"


def test_what_the_folder_of_a_killed_run_is_good_for(call: Call, model: Path, tmp_path: Path) -> None:
    folder = cut_off(tmp_path, model)
    answer = call("run", model, "-o", "cut", "--checkpoint", "20steps")
    assert answer.code == 2
    assert answer.err.startswith("'cut/checkpoints' is expected to hold no checkpoints where a run begins, and holds")
    there = sorted(folder.glob("checkpoints/*.h5"))
    answer = call("run", model, "-o", "cut", "--steps", "30")
    assert answer.code == 0
    assert "'cut/checkpoints' holds the checkpoints of an earlier run, which stay; '--resume' goes on" in answer.err
    assert sorted(folder.glob("checkpoints/*.h5")) == there, "a run without checkpoints removes none"
    model.write_text(LONG.replace("permittivity = 4.0", "permittivity = 5.0"))
    answer = call("run", model, "-o", "cut", "--resume")
    assert answer.code == 2
    assert "is expected to be of the same problem, but differs in field 'ca', field 'cb', field" in answer.err
    model.write_text(LONG.replace("snapshots = 10", "snapshots = 20"))
    answer = call("run", model, "-o", "cut", "--resume")
    assert answer.code == 2
    assert "of a run with snapshots of Ez every 20 steps, stride 1, got one with Ez every 10 steps" in answer.err
    model.write_text(LONG)
    answer = call("run", model, "-o", "cut", "--resume", "--steps", "4000000")
    assert answer.code == 2
    assert "is expected to be of a run of 4000000 steps, got one of 3000000; leave the time of the model" in answer.err
    damaged = list(folder.glob("checkpoints/step-*.h5"))  # three where the kill came before the oldest was removed
    for file in damaged:
        file.write_bytes(file.read_bytes()[:-100])
    model.write_text(LONG)
    answer = call("run", model, "-o", "cut", "--resume", "--steps", "30")
    assert answer.code == 0
    assert answer.err.count("is expected to be a checkpoint, got ") == len(damaged) >= 2
    assert "There is no checkpoint in 'cut/checkpoints'; the run starts at its first step." in answer.err


def test_a_damaged_checkpoint_leaves_the_one_before(call: Call, model: Path, tmp_path: Path) -> None:
    model.write_text(MODEL.replace("steps = 30", "steps = 8000"))
    process = started(tmp_path, model, "--checkpoint", "20steps", "--devices", "cpu:1")
    wait_for_checkpoints(tmp_path, 2)
    process.kill()
    process.communicate()
    files = sorted((tmp_path / "cut/checkpoints").glob("step-*.h5"))
    with h5py.File(files[-1], "r+") as file:
        file["fields/Ez"][5, 5] += 1e-3
    answer = call("run", model, "-o", "cut", "--resume", "--json")
    assert answer.json["resumed_from"] == int(files[-2].stem.removeprefix("step-"))
    assert f"'cut/checkpoints/{files[-1].name}' is expected to be a checkpoint, got contents that do not" in answer.err
    assert answer.json["sha256"] == call("run", model, "--no-write", "--json").json["sha256"]


def test_a_run_whose_snapshots_are_gone_does_not_go_on(call: Call, model: Path, tmp_path: Path) -> None:
    folder = cut_off(tmp_path, model)
    (folder / "checkpoints/snapshots-from-000000000000.h5").unlink()
    answer = call("run", model, "-o", "cut", "--resume")
    assert answer.code == 2
    assert "'cut/checkpoints' is expected to hold the snapshots up to step " in answer.err
    assert "but lacks that of step 10; bring its files back, or start anew." in answer.err


def test_a_disk_that_is_too_full_for_checkpoints_does_not_end_the_run(model: Path, tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk. Snapshots are too much as well, so there are none."""
    model.write_text(MODEL.replace("snapshots = 10", "snapshots = 0"))
    done = subprocess.run(
        [sys.executable, "-m", "peergrid", "run", str(model), "-o", "full", "--checkpoint", "10steps", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )  # fmt: skip
    assert done.stderr.count("A checkpoint could not be written, and the run continues without it: Room to write") == 3
    assert '"steps": 30' in done.stdout or done.returncode == 2, "results may not fit either"


@pytest.mark.parametrize("period", ["0s", "500", "1.5steps", "soon", "-3s", "9" * 400 + "s", ""])
def test_periods_that_mean_nothing(call: Call, model: Path, period: str) -> None:
    answer = call("run", model, f"--checkpoint={period}")
    assert answer.code == 2
    assert answer.err.startswith("Checkpoints are made after a period such as 500steps, 60s, 5min or 1h, got '")


def test_checkpoints_need_a_folder(call: Call, model: Path) -> None:
    assert call("run", model, "--no-write", "--resume").code == 2


def test_by_the_clock(call: Call, model: Path, tmp_path: Path) -> None:
    model.write_text(LONG)
    process = started(tmp_path, model, "--checkpoint", "0.3s", "--devices", "cpu:1")
    wait_for_checkpoints(tmp_path, 2)
    assert len(list((tmp_path / "cut/checkpoints").glob("step-*.h5"))) == 2
    process.kill()
    process.communicate()


def test_two_runs_do_not_write_into_one_folder(call: Call, model: Path, tmp_path: Path) -> None:
    model.write_text(LONG)
    process = started(tmp_path, model, "--checkpoint", "20steps", "--devices", "cpu:1")
    wait_for_checkpoints(tmp_path, 1)
    answer = call("run", model, "-o", "cut")
    process.kill()
    process.communicate()
    assert answer.code == 2
    assert answer.err == (
        "The results should go to 'cut', but another run writes there: wait for it, or choose another folder with -o "
        "DIR.\n"
    )


def test_what_a_killed_run_left_incomplete_is_removed(call: Call, model: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cut", ignore_errors=True)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/.snapshots.4711.partial.h5").write_text("half")
    (tmp_path / "cut/.peergrid").write_text("a file of the user")
    assert call("run", model, "-o", "cut").code == 0
    assert sorted(os.listdir(tmp_path / "cut")) == [".peergrid", "results.h5", "snapshots.h5"]


def test_a_run_that_fails_before_its_first_snapshot_leaves_those_of_an_earlier_one(
    call: Call, model: Path, tmp_path: Path
) -> None:
    assert call("run", model, "-o", "cut").code == 0
    before = (tmp_path / "cut/snapshots.h5").read_bytes()
    wild = MODEL.replace("4e9", "4e9, amplitude = 1e33").replace("steps = 30", "steps = 400")
    model.write_text(wild.replace("snapshots = 10", "snapshots = 300"))
    assert call("run", model, "-o", "cut").code == 4
    assert (tmp_path / "cut/snapshots.h5").read_bytes() == before
