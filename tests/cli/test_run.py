"""`peergrid run`: its JSON contract, its files, its exit codes."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_call import MODEL, Call

from peergrid.schedule.strategies import STRATEGIES
from peergrid.simulate import Simulation

CONTRACT = {
    "model", "shape", "cells", "steps", "dtype", "devices", "strategy", "depth", "seconds", "gcells_per_s",
    "roofline_fraction", "exposed_communication", "sha256", "outputs",
}  # fmt: skip


def test_json_holds_the_contract_and_nothing_else_is_printed(call: Call, model: Path) -> None:
    answer = call("run", model, "--devices", "cpu:2", "--json")
    assert answer.code == 0
    found = answer.json
    assert found.keys() >= CONTRACT
    assert found["shape"] == [61, 41]
    assert found["cells"] == 61 * 41
    assert found["steps"] == 30
    assert found["dtype"] == "float32"
    assert found["devices"] == "cpu:2"
    assert 0 <= found["exposed_communication"] <= 1
    assert found["roofline_fraction"] > 0
    assert found["host_seconds"] is None  # no GPU


def test_files_are_whole_and_in_the_known_layout(call: Call, model: Path, tmp_path: Path) -> None:
    found = call("run", model, "-o", "here", "--json").json
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["results.h5", "snapshots.h5"]
    assert found["outputs"] == ["here/results.h5", "here/snapshots.h5"]
    with h5py.File(tmp_path / "here/results.h5") as file:
        assert file["rxs/rx1/Ez"].shape == (31,)
        assert np.abs(file["rxs/rx1/Ez"]).max() > 0
        assert file.attrs["sha256"] == found["sha256"]
        assert {"dt", "dx_dy_dz", "nx_ny_nz", "Iterations", "Title"} <= file.attrs.keys()
    with h5py.File(tmp_path / "here/snapshots.h5") as file:
        assert list(file["step"]) == [10, 20, 30]


def test_same_digest_on_any_devices_and_under_any_strategy(call: Call, model: Path) -> None:
    digests = {
        call("run", model, "--no-write", "--json", "--devices", f"cpu:{n}", "--strategy", strategy, "--depth", depth,
             "--order", order).json["sha256"]
        for n, strategy, depth, order in [
            (1, "serial", 1, "all"),
            *((3, strategy, 2, "pairwise") for strategy in STRATEGIES),
            (4, "overlap", 5, "left-right"),
            (7, "peer", 3, "all"),
        ]
    }  # fmt: skip
    assert len(digests) == 1


def test_split_along_two_axes(call: Call, model: Path) -> None:
    plain = call("run", model, "--no-write", "--json", "--devices", "cpu:1").json
    split = call("run", model, "--no-write", "--json", "--devices", "cpu:6", "--split", "3x2").json
    assert split["split"] == [3, 2]
    assert split["rows"] == [21, 21, 20, 20, 20, 20]
    assert split["sha256"] == plain["sha256"]


def test_text_names_the_digest_and_the_files(call: Call, model: Path) -> None:
    answer = call("run", model, "--devices", "cpu:1", "--steps", "5")
    assert "61 × 41 cells, 5 steps on cpu:1" in answer.out
    assert "sha256 " in answer.out
    assert "results/small/results.h5" in answer.out


def test_a_field_that_is_not_finite_ends_with_step_and_place(call: Call, model: Path) -> None:
    model.write_text(MODEL.replace("4e9", "4e9, amplitude = 1e33").replace("steps = 30", "steps = 300"))
    answer = call("run", model, "--devices", "cpu:1")
    assert answer.code == 4
    assert "after step 200; expected finite values" in answer.err


def test_an_unwritable_folder_is_refused_before_anything_is_computed(call: Call, model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = call("run", model, "-o", "file/results")
    assert answer.code == 2
    assert answer.err.startswith(
        "The results should go to 'file/results', which cannot be written (Not a directory): choose a folder"
    )
    (tmp_path / "out/results.h5").mkdir(parents=True)
    answer = call("run", model, "-o", "out")
    assert answer.code == 2
    assert answer.err.startswith(
        "The results should go to 'out', which cannot be written ('results.h5' there is a folder): choose a folder"
    )


def test_nanoseconds_in_place_of_seconds_are_noticed(call: Call, model: Path) -> None:
    model.write_text(MODEL.replace("steps = 30", "time_window = 20"))
    assert "got 20 s; shorten it, or give seconds: 20e-9?" in call("run", model).err


def run_on_full_disk(model: Path, folder: Path, most: int) -> subprocess.CompletedProcess[str]:
    """A limit on the bytes of a file stands for the full disk: the same failing write, without mounting anything."""
    return subprocess.run(
        [sys.executable, "-m", "peergrid", "run", str(model), "-o", "full", "--devices", "cpu:1"],
        cwd=folder, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )  # fmt: skip


def test_a_full_disk_leaves_no_broken_file(model: Path, tmp_path: Path) -> None:
    done = run_on_full_disk(model, tmp_path, 4096)
    assert done.returncode == 2, done.stderr
    assert "is expected, got: File too large" in done.stderr
    assert list((tmp_path / "full").iterdir()) == []


def test_a_disk_that_is_full_midway_keeps_the_snapshots_until_then(model: Path, tmp_path: Path) -> None:
    model.write_text(MODEL.replace("snapshots = 10", "snapshots = 1"))
    done = run_on_full_disk(model, tmp_path, 120_000)
    assert done.returncode == 2, done.stderr
    said = r"'full/snapshots.h5' has the snapshots up to step (\d+) alone: Room to write 'full/snapshots.h5' is "
    warned, ended = re.findall(said, done.stderr)
    assert warned == ended
    with h5py.File(tmp_path / "full/snapshots.h5") as file, h5py.File(tmp_path / "full/results.h5") as results:
        assert list(file["step"]) == list(range(1, int(ended) + 1)) != []
        assert results["rxs/rx1/Ez"].shape == (31,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_whole_files(model: Path, tmp_path: Path, number: signal.Signals) -> None:
    hurried = number != signal.SIGINT  # then no pictures are drawn, which the model asks for
    drawing = MODEL.replace("pictures = false", f"pictures = {str(hurried).lower()}")
    model.write_text(drawing.replace("steps = 30", "steps = 3000000"))
    process = subprocess.Popen(
        [sys.executable, "-m", "peergrid", "run", str(model), "-o", "cut", "--devices", "cpu:2", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list((tmp_path / "cut").glob(".snapshots*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f'"interrupted_by": "{number.name}"' in out
    assert (f"No pictures are drawn after {number.name}" in err) == hurried
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["results.h5", "snapshots.h5"]
    with h5py.File(tmp_path / "cut/results.h5") as file:
        steps = int(file.attrs["steps"])
        assert 0 < steps < 3000000
        assert file["rxs/rx1/Ez"].shape == (steps + 1,)


def test_memory_that_runs_out_is_one_sentence(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Simulation, "run", none_left)
    answer = call("run", model, "--no-write", "--devices", "cpu:1")
    assert answer.code == 3
    assert answer.err.splitlines()[-1].startswith(
        "This machine, or the limit set for this process, has too little memory"
    )


def test_an_output_that_is_a_file_is_one_sentence(call: Call, model: Path) -> None:
    assert call("run", model, "-o", model).err.endswith("but that is a file: choose a folder with -o DIR.\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_kernels_are_made_ends_at_once(
    model: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    made = "import os, peergrid.cli; from peergrid.cli.choose import RequestedOptions as R; "
    waiting = f"R.simulation = lambda *_: os.kill(os.getpid(), {int(number)}) or __import__('time').sleep(60); "
    done = subprocess.run(
        [sys.executable, "-c", made + waiting + "peergrid.cli.main()", "run", str(model), "--no-write"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")


def test_a_film_that_cannot_be_made_is_refused_before_the_run(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    model.write_text(MODEL + 'animation = "mp4"\n')
    answer = call("run", model, "-o", "film")
    assert answer.code == 2
    assert "install peergrid with its extra 'mp4'" in answer.err
    assert not list((tmp_path / "film").iterdir())


def test_a_plan_says_the_rows_of_each_device(call: Call, model: Path) -> None:
    assert call("plan", model, "--json", "--devices", "cpu:3").json["rows"] == [21, 20, 20]
    assert "split 3×1, rows 21, 2 × 20\n" in call("plan", model, "--devices", "cpu:3").out


SHELL = f"{sys.executable} -m peergrid run small.toml -o out --devices cpu:1"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (f"{SHELL} 2>&-", 0, ""),
        (f"{SHELL} >&-", 0, ""),
        (f"{SHELL} --json > /dev/full", 2, "could not be written: No space left on device."),
        (f"{SHELL} --json 2> /dev/full | true", 0, ""),
        (f"MPLBACKEND=nonsense {SHELL}", 0, ""),
        (f"{SHELL} 2> /dev/full", 0, ""),
    ],
)
def test_whatever_the_shell_does(model: Path, tmp_path: Path, command: str, code: int, said: str) -> None:
    coarse = MODEL.replace("frequency = 4e9", "frequency = 8e9")  # of which a run warns
    model.write_text(coarse.replace("snapshots = 10\npictures = false", "pictures = true"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert (tmp_path / "out/results.h5").exists()
