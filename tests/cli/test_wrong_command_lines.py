"""Command lines that cannot mean anything: one sentence each, exit code 2, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_call import Call
from PIL import Image

import peergrid

WRONG = [
    (("run", "nowhere.toml"), "nowhere.toml"),
    (("run", "MODEL", "--devices", "gpu"), "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got 'gpu'."),
    (("run", "MODEL", "--devices", "cpu:0"), "'cpu:N' takes 1 to 1024 virtual devices, got 0."),
    (("run", "MODEL", "--devices", "cpu:62", "--depth", "1", "--split", "62x1"),
     "The grid has 61 cells along axis 0, too few for 62 parts; use at most 61 devices there or split another axis."),
    (("run", "MODEL", "--strategy", "fast"),
     "A strategy is one of serial, async, threads, overlap, "),
    (("run", "MODEL", "--depth", "0"), "'--depth' takes a whole number above 0 (or 'auto'), got '0'."),
    (("run", "MODEL", "--depth", "deep"), "'--depth' takes a whole number above 0 (or 'auto'), got 'deep'."),
    (("run", "MODEL", "--depth", "10001"), "The depth is at most 10,000 steps, got 10,001."),
    (("verify", "MODEL", "--depth", "100000000"), "The depth is at most 10,000 steps, got 100,000,000."),
    (("run", "MODEL", "-o", ""), "'--output' takes the name of a folder, got ''; leave it out for results/NAME."),
    (("probe", "host-flag", "--quick", "-o", "/proc/p.json"),
     "'/proc/p.json' should lie in a folder that can be written, got: No such file or directory; choose another.\n"),
    (("trace", "MODEL", "-o", "/proc/t.json"), "choose a folder you can write to with -o FILE."),
    (("bench", "small", "-o", ""), "'--output' takes the name of a folder, got ''; leave it out for no files."),
    (("farm", "-i", "x", "--log", "", "--", "true", "{}"), "'--log' takes the name of a folder, got ''; leave it out"),
    (("run", "MODEL", "--strategy", ""), "A strategy is one of serial, async, threads, overlap, "),
    (("run", "MODEL", "--order", ""), "An exchange order is one of all, left-right, pairwise, got ''."),
    (("run", "MODEL", "--order", "zigzag"),
     "An exchange order is one of all, left-right, pairwise, got 'zigzag'."),
    (("run", "MODEL", "--split", "2"), "'--split' takes 2 numbers such as 2x2, got '2'."),
    (("run", "MODEL", "--split", "2x-1"), "'--split' takes a whole number above 0 (or 'auto'), got '-1'."),
    (("run", "MODEL", "--devices", "cpu:3", "--split", "2x2"),
     "The split 2×2 makes 4 parts for 3 devices; give as many parts as devices."),
    (("run", "MODEL", "--steps", "0"), "'--steps' takes a whole number above 0, got 0."),
    (("run", "MODEL", "--steps", "many"),
     "Invalid value for '--steps': a whole number is expected; see 'peergrid run --help'."),
    (("run", "MODEL", "--devices", "4"), "got '4'; write 'cpu:4' or GPUs such as 'cuda:0'."),
    (("run", "MODEL", "--no-such-option"), "No such option: --no-such-option"),
    (("plan", "nowhere.toml"), "nowhere.toml"),
    (("plan", "MODEL", "--strategy", "magic"), "A strategy is one of"),
    (("trace", "MODEL", "-o", "."), "'--output' of trace names a file, got the folder '.'; add a name such as"),
    (("trace", "MODEL", "-o", "/proc/none/t.json"), "go to '/proc/none', which cannot be written (No such file"),
    (("bench", "small", "--devices", "cpu:1", "-o", "/proc/none"), "go to '/proc/none', which cannot be written (No"),
    (("bench", "small", "--devices", "cpu:3", "--counts", "1,4"),
     "'--counts' takes numbers with commas, each from 1 to the number of devices, here 3, got '1,4'; "
     "leave it out to measure on 1,2,3."),
    (("bench", "small", "--devices", "cpu:3", "--counts", "0"), "here 3, got '0'; leave it out"),
    (("bench", "small", "--devices", "cpu:3", "--counts", "1;2"), "here 3, got '1;2'; leave it out"),
    (("bench", "small", "--devices", "cpu:3", "--counts", ""), "here 3, got ''; leave it out"),
    (("frobnicate",), "No such command 'frobnicate'"),
    (("run", "MODEL", "--devices-per-trace", "2"),
     "'--devices-per-trace' is for surveys, got a model without one; leave it out."),
    (("plan", "MODEL", "--picture", "/proc/none/a.png"), "choose a folder you can write to with --picture FILE."),
    (("farm", "-i", "a", "--retries", "-1", "--", "echo", "{}"),
     "'--retries' takes a whole number, 0 or more, got -1."),
    (("farm", "--lines", "/dev/zero", "--", "echo", "{}"),
     "lines of at most 67,108,864 characters in all; '/dev/zero'"),
    (("run", "heat.py"), "heat.py: A model file is expected, got a script of Python; run it: python heat.py."),
    (("run",), "Missing argument 'MODEL.toml'; see 'peergrid run --help'."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(a) for a, _ in WRONG])
def test_wrong_command_line(call: Call, model: Path, tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    answer = call(*(str(model) if a == "MODEL" else a for a in arguments))
    assert answer.code == 2
    assert sentence in answer.err
    assert answer.out == ""
    assert not list(tmp_path.glob("results/**/*.h5"))


OUTPUTS = [
    (("trace", "MODEL"), "-o"),
    (("plan", "MODEL", "--machine", "h200-x8"), "--timeline"),
    (("plan", "MODEL"), "--picture"),
    (("machine",), "--svg"),
    (("probe",), "-o"),
    (("report", "MODEL"), "-o"),
    (("convert", "model.in"), ""),
    (("image", "grey.png", "x"), "-o"),
]


@pytest.mark.parametrize(("arguments", "option"), OUTPUTS, ids=[f"{a[0]} {option}" for a, option in OUTPUTS])
def test_an_output_replaces_no_pipe_or_device(
    call: Call, model: Path, tmp_path: Path, arguments: tuple[str, ...], option: str
) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "grey.png")
    pipe = tmp_path / f"pipe.{'toml' if arguments[0] == 'convert' else 'png'}"
    os.mkfifo(pipe)
    answer = call(*(model if a == "MODEL" else a for a in arguments), *filter(None, [option]), pipe)
    assert answer.code == 2
    assert f"'{pipe}' is expected to be free or a file to replace, got a folder, a device or a pipe" in answer.err
    assert pipe.is_fifo()


@pytest.mark.parametrize("arguments", [("trace", "-o"), ("plan", "--machine", "h200-x8", "--timeline")])
def test_a_timeline_replaces_nothing_but_a_timeline(call: Call, model: Path, arguments: tuple[str, ...]) -> None:
    command, *options = arguments
    text = model.read_text()
    answer = call(command, model, *options, model)
    assert answer.code == 2
    assert f"'{model}' should be free or a timeline to replace, but holds something else" in answer.err
    assert model.read_text() == text
    assert [call(command, model, *options, "t.json").code for _ in range(2)] == [0, 0]


LATE = {
    "fdtd2d": "[grid]\nsize = [0.4, 0.4]\nspacing = 0.01\ntime_window = 2e-8\n"
    "[[source]]\nkind = 'line'\nposition = [0.9, 0.2]\nwaveform = {kind = 'ricker', frequency = 6e8}\n",
    "time": "[grid]\nsize = [0.4, 0.4]\nspacing = 0.01\ntime_window = 20\n"
    "[[source]]\nkind = 'line'\nposition = [0.2, 0.2]\nwaveform = {kind = 'ricker', frequency = 6e8}\n",
    "acoustic2d": "[model]\nkind = 'acoustic2d'\n[grid]\nsize = [400.0, 400.0]\nspacing = 10.0\ntime = 0.1\n"
    "[medium]\nvelocity = 1500.0\n"
    "[[source]]\nposition = [900.0, 20.0]\nwaveform = {kind = 'ricker', frequency = 20.0}\n",
}


@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("command", ["run", "plan", "trace"])
def test_what_is_found_after_reading_names_the_file_too(call: Call, tmp_path: Path, kind: str, command: str) -> None:
    (tmp_path / "late.toml").write_text(LATE[kind])
    answer = call(command, str(tmp_path / "late.toml"))
    assert (answer.code, answer.err.startswith("late.toml: ")) == (2, True), answer.err


def test_shells_complete_commands_and_options() -> None:
    for words, found in (("peergrid pl", "plan"), ("peergrid plan --pi", "--picture")):
        asked = {"_PEERGRID_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [sys.executable, "-c", "import sys; sys.argv[0] = 'peergrid'; from peergrid.cli import main; main()"]
        done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
        assert done.stdout.split() == [found], done.stderr


def test_which_version(call: Call) -> None:
    answer = call("--version")
    assert (answer.code, answer.out) == (0, f"peergrid {peergrid.__version__}\n")


@pytest.mark.parametrize("slow", ["matplotlib", "numba", "cuda", "peergrid.models.fdtd.build"])
def test_drawing_compilers_and_drivers_come_when_they_are_needed(slow: str) -> None:
    code = f"import sys, peergrid.cli; print('{slow}' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_little_is_loaded_before_an_interrupt_is_expected() -> None:
    """The entry point ends silently if it is interrupted while it loads the command line, but not before."""
    found = "sorted(name for name in sys.modules if name.startswith(('peergrid', 'numpy')))"
    code = f"import sys, peergrid.__main__; print({found})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['peergrid', 'peergrid.__main__', 'peergrid.version']\n"


def test_all_names_are_found_where_they_are_said_to_be() -> None:
    absent = "[n for n in peergrid.__all__ if n not in globals()]"
    code = f"from peergrid import *; import peergrid; print({absent}, dir(peergrid))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] [")
    assert all(f"'{name}'" in done.stdout for name in (*peergrid.__all__, "models", "errors"))


def test_a_name_that_no_file_can_have(call: Call, tmp_path: Path) -> None:
    answer = call("report", "profile.json", "-o", "x" * 300)
    assert answer.code == 2
    assert answer.err.endswith("is no name for a file: File name too long; choose another.\n")


def test_commands_of_one_process_refuse_a_launcher_of_several(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "3")
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)  # joined processes would be ended
    for command in ("plan", "trace", "verify"):
        result = call(command, "MODEL")
        assert result.code == 2
        assert f"'{command}' is the work of one process, but a launcher started 3; only 'run' shares" in result.err
