"""`peergrid farm` as it is used: logs and exit codes, retries, kills, resumption, and inputs that make no sense."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from glob import glob
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from cli_call import Call

from peergrid.cli.farm import Progress
from peergrid.farm import FarmFolder, JobQueue, make_jobs, parse_slots, work

PAGE = (Path(__file__).parents[2] / "docs" / "farm.md").read_text()


def begin(cwd: Path, *words: str) -> subprocess.Popen[str]:
    farm = [sys.executable, "-m", "peergrid", "farm", *words]
    return subprocess.Popen(farm, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(path: Path, lines: int) -> None:
    """Wait until a file has so many lines."""
    for _ in range(3000):
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never had {lines} lines")


def test_logs_exit_codes_retries_and_resumption(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo {} is {number}; echo {stem} >>ledger; [ {number} != 3 ] || [ -e mended ]"
    monkeypatch.setattr(sys, "stdin", StringIO("a/one.toml\n\na/two words.toml\nthree\n"))
    done = call("farm", "--slots", "cpu:2", "--retries", "1", "--json", "--", "sh", "-c", script)
    assert done.code == 1
    assert "All 3 jobs should end with exit code 0, but 1 did not: 'three' (1); see their logs in 'farm'" in done.err
    assert [done.json[key] for key in ("jobs", "done", "retried", "left")] == [3, 2, 1, 0]
    assert done.json["failed"] == [{"job": 3, "input": "three", "code": 1, "log": "farm/3.log"}]
    assert (tmp_path / "farm/2.log").read_text() == "a/two words.toml is 2\n"
    assert (tmp_path / "farm/3.log").read_text() == "three is 3\n" * 2

    (tmp_path / "mended").touch()
    again = call("farm", "--resume", "--json", "--slots", "cpu:2")
    assert again.code == 0, again.err
    assert (again.json["done"], again.json["done_before"]) == (3, 2)
    assert sorted((tmp_path / "ledger").read_text().splitlines()) == ["one", "three", "three", "three", "two words"]

    assert "is expected to hold no farm" in call("farm", "-i", "x", "--", "true", "{}").err
    other = call("farm", "-i", "x", "--resume", "--", "true", "{}")
    assert other.code == 2
    assert "but others came" in other.err


def test_a_terminal_shows_how_far_it_is_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(3, 1)
    progress(JobQueue.of([2, 3], 1))
    assert sys.stderr.getvalue() == "\r1 of 3 jobs done, 0 running\033[K"  # type: ignore[attr-defined]
    progress(replace(JobQueue.of([2, 3], 1), done=1))
    assert re.search(r" jobs/s, \d+ s left", sys.stderr.getvalue())  # type: ignore[attr-defined]


def test_a_killed_farm_leaves_jobs_that_the_next_one_takes_over(call: Call, tmp_path: Path) -> None:
    script = "echo begin {} >>ledger; sleep 0.7; echo end {} >>ledger"
    words = ("--slots", "cpu:2", "--json", "-i", "1", "2", "3", "--", "sh", "-c", script)
    first = begin(tmp_path, *words)
    until(tmp_path / "ledger", 2)
    first.kill()
    first.communicate()
    second = call("farm", "--resume", *words)
    assert second.code == 0, second.err
    assert second.json["done"] == 3
    ledger = sorted((tmp_path / "ledger").read_text().splitlines())
    assert ledger == ["begin 1", "begin 2", "begin 3", "end 1", "end 2", "end 3"]


def test_two_signals_end_jobs_that_are_left_for_the_next_farm(tmp_path: Path) -> None:
    script = "echo begin {} >>ledger; sleep 60"
    process = begin(tmp_path, "--slots", "cpu:2", "--json", "-i", "1", "2", "3", "--", "sh", "-c", script)
    until(tmp_path / "ledger", 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    found = json.loads(out)
    assert process.returncode == 130, err
    assert (found["done"], found["left"], found["interrupted_by"]) == (0, 3, "SIGTERM")
    folder = FarmFolder(tmp_path / "farm")
    assert [folder.exit_code(job) for job in (1, 2, 3)] == [None] * 3
    assert not any(folder.runs(job) for job in (1, 2, 3))


def test_a_farm_that_drains_ends_what_runs_and_starts_nothing(tmp_path: Path) -> None:
    jobs, folder = make_jobs(["sh", "-c", "sleep 0.1; echo {}"], ["1", "2", "3"]), FarmFolder(tmp_path)
    queue = work(jobs, parse_slots("cpu:2"), JobQueue.of([1, 2, 3], 2), folder, requests=lambda: 1)
    assert (queue.done, queue.waiting, queue.finished) == (2, (3,), True)
    assert [folder.exit_code(job) for job in (1, 2, 3)] == [0, 0, None]


def test_one_farm_in_a_folder(call: Call, tmp_path: Path) -> None:
    (tmp_path / "farm").mkdir()
    opened = os.open(tmp_path / "farm", os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    refused = call("farm", "-i", "1", "--", "true", "{}")
    os.close(opened)
    assert refused.code == 2
    assert "but another farm works there" in refused.err
    assert call("farm", "-i", "1", "--", "true", "{}").code == 0


EXAMPLES = re.findall(r"^    (peergrid farm .+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_command_lines_of_the_page_run(call: Call, tmp_path: Path, line: str) -> None:
    """With 'echo' in place of the programs, and one processor in place of GPUs."""
    (tmp_path / "models").mkdir()
    for name in ("models/a.toml", "models/b.toml", "depths.txt"):
        (tmp_path / name).write_text("0.1\n")
    words = shlex.split(line)[1:]
    cut = words.index("--") if "--" in words else len(words)
    globbed = [name for word in words[:cut] for name in (sorted(glob(word, root_dir=tmp_path)) or [word])]
    given = ["cpu:1" if word.startswith("cuda") else word for word in globbed]
    if "--resume" in given:
        assert call("farm", "-i", "models/a.toml", "--", "echo", "{}").code == 0
    answer = call(*given, *(["--", "echo", *words[cut + 1 :]] if cut < len(words) else []))
    assert answer.code == 0, answer.err
    assert (tmp_path / "farm" / "1.exit").read_text() == "0\n"


WRONG = [
    (("-i", "x"), "After '--' a command with '{}' in place of the input is expected, got nothing;"),
    (("--resume", "--log", "nowhere"), "'nowhere' should hold a farm to continue, but has none; name its folder"),
    (("-i", "x", "--", "true"), "is expected, got 'true'; such as: peergrid farm -i *.toml -- peergrid run {}."),
    (("-i", "x", "--", "no-such-program", "{}"), "'no-such-program' should be a program that can be run, but none"),
    (("--", "true", "{}"), "At least one input is expected, got none: name them with -i, or their file with --lines."),
    (("--lines", "nowhere", "--", "true", "{}"), "The inputs should be the lines of 'nowhere', but No such file"),
    (("-i", "x", "a\0b", "--", "true", "{}"), "Input 2 has a zero byte, such as 'find -print0' writes; separate"),
    (("-i", "x" * 140_000, "--", "true", "{}"), "at most 131,071 bytes, but with input 1 one has 140,000; write"),
    (("-i", "x", "--log", "/proc/none", "--", "true", "{}"), "go to '/proc/none', which cannot be written (No"),
]  # fmt: skip


def test_lines_end_at_line_feeds_alone_and_a_byte_order_mark_is_none_of_an_input(call: Call, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes("\ufeffone\r\ntwo\x1cparts\u2028and more\r\n\r\n".encode())
    assert call("farm", "--lines", "lines", "--", "echo", "{}").code == 0
    assert (tmp_path / "farm/1.log").read_bytes() == b"one\n"
    assert (tmp_path / "farm/2.log").read_text() == "two\x1cparts\u2028and more\n"


def test_a_farm_whose_folder_cannot_be_written_names_it(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(import_module("peergrid.farm.work"), "_write", full)
    answer = call("farm", "-i", "x", "--", "true", "{}")
    assert answer.code == 2
    assert "The farm in 'farm' could not go on: No space left on device. Jobs that run may end; go on" in answer.err


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_command_line(call: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO())
    answer = call("farm", *words)
    assert answer.code == 2
    assert sentence in answer.err
