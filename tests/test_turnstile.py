"""Who shares the lock overlaps; who wants it alone gets it, and has it alone. And tests marked `gpu` hold it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from turnstile import GATE, LOCK, held

fcntl = pytest.importorskip("fcntl")

PATIENCE = 60.0  # seconds after which something that has to come is missed
ROUNDS = 40
SPAWN = get_context("spawn")


def refused(file: Path, kind: int) -> bool:
    """Whether a file cannot be locked now."""
    with file.open("w") as opened:
        try:
            fcntl.flock(opened, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def running(body: Callable[..., None], arguments: list[tuple[Any, ...]]) -> Iterator[None]:
    """A process for each of the arguments; all end well, or are ended."""
    processes = [SPAWN.Process(target=body, args=given, daemon=True) for given in arguments]
    for process in processes:
        process.start()
    try:
        yield
        for process in processes:
            process.join(PATIENCE)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.join()


def meet(folder: Path, inside: Barrier) -> None:
    with held(folder, alone=False):
        inside.wait(PATIENCE)


def test_who_shares_overlaps(tmp_path: Path) -> None:
    """All are inside before one leaves."""
    with running(meet, [(tmp_path, SPAWN.Barrier(3))] * 3):
        pass
    assert not refused(tmp_path / LOCK, fcntl.LOCK_EX)


def visit(folder: Path, alone: bool, pipe: Connection) -> None:
    pipe.send("asks")
    with held(folder, alone=alone):
        pipe.send("is in")
        assert pipe.recv() == "leave"


def heard(pipe: Connection) -> str:
    assert pipe.poll(PATIENCE)
    return str(pipe.recv())


def test_who_waits_to_be_alone_is_next(tmp_path: Path) -> None:
    """One shares; one waits to be alone; those who come to share after that stay outside until it has been."""
    pipes = [SPAWN.Pipe() for _ in range(5)]
    (first, alone, *late), ends = zip(*pipes, strict=True)
    with running(visit, [(tmp_path, False, ends[0])]):
        assert (heard(first), heard(first)) == ("asks", "is in")
        with running(visit, [(tmp_path, True, ends[1])]):
            assert heard(alone) == "asks"
            missed = time.monotonic() + PATIENCE
            while not refused(tmp_path / GATE, fcntl.LOCK_EX):
                assert time.monotonic() < missed
            with running(visit, [(tmp_path, False, end) for end in ends[2:]]):
                assert [heard(pipe) for pipe in late] == ["asks"] * len(late)
                assert wait([alone, *late], 0.3) == []  # long enough to see who passes, and never too short
                first.send("leave")
                assert heard(alone) == "is in"
                assert refused(tmp_path / LOCK, fcntl.LOCK_SH)
                assert wait(late, 0) == []
                alone.send("leave")
                assert [heard(pipe) for pipe in late] == ["is in"] * len(late)
                for pipe in late:
                    pipe.send("leave")


def come_and_go(
    folder: Path, alone: bool, start: Barrier, sharing: Synchronized[int], single: Synchronized[int]
) -> None:
    mine = single if alone else sharing
    start.wait(PATIENCE)
    for _ in range(ROUNDS):
        with held(folder, alone=alone):
            with mine.get_lock():
                mine.value += 1
            assert single.value == int(alone)
            assert not (alone and sharing.value)
            time.sleep(1e-3)  # who is let in wrongly comes now
            assert single.value == int(alone)
            assert not (alone and sharing.value)
            with mine.get_lock():
                mine.value -= 1


def test_alone_is_alone_however_often_others_come(tmp_path: Path) -> None:
    common = SPAWN.Barrier(4), SPAWN.Value("i", 0), SPAWN.Value("i", 0)
    with running(come_and_go, [(tmp_path, alone, *common) for alone in (False, True, False, True)]):
        pass


MARKED = """
import fcntl
from pathlib import Path

import pytest
from test_turnstile import refused

LOCK = Path({lock!r})


@pytest.mark.gpu
def test_shares():
    assert refused(LOCK, fcntl.LOCK_EX)
    assert not refused(LOCK, fcntl.LOCK_SH)


@pytest.mark.gpu
def test_is_alone(alone):
    assert refused(LOCK, fcntl.LOCK_SH)


def test_needs_no_gpu():
    assert not refused(LOCK, fcntl.LOCK_EX)
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_tests_that_are_marked_hold_the_lock(tmp_path: Path, workers: int) -> None:
    """One and the same file for all workers, in the folder that the run was given."""
    here, base = Path(__file__).parent, tmp_path / "base"
    for name in ("conftest.py", "long_tests.txt"):
        shutil.copy(here / name, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu: here, without one\n")
    (tmp_path / "test_marked.py").write_text(MARKED.format(lock=str(base / LOCK)))
    command = [sys.executable, "-m", "pytest", "-q", f"-n{workers}", f"--basetemp={base}", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(here)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
