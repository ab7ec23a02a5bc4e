"""A campaign: each run is ended some times, goes on with other devices each time, and is compared at its end."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import h5py

from kills import power
from kills.runs import RUNS, STRATEGIES

POWER = "power off"
ENDS = ("SIGKILL", "SIGTERM", "SIGINT", "full disk", POWER)
DEPTHS = (1, 4)
LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT
LIMITS = (2_000, 400_000)  # bytes that a file may have where the disk is full, at random between these


@dataclass(frozen=True)
class Cut:
    """One end of a run: how, after so many seconds from its start or first checkpoint, and its exit code."""

    how: str
    seconds: float
    code: int
    strategy: str
    devices: int
    checkpoints: int


@dataclass(frozen=True)
class Trial:
    """A run that was ended some times, and what it left."""

    run: str
    cuts: tuple[Cut, ...]
    same: bool
    said: str


@dataclass(frozen=True)
class Whole:
    """A run that nothing ends: its name and steps, what it leaves, and how long it takes."""

    name: str
    steps: int
    digest: str = ""
    seconds: float = 0.0


def campaign(
    folder: Path, kills: int, seed: int, steps: int, ends: Sequence[str] = ENDS, runs: Sequence[str] = tuple(RUNS)
) -> Iterator[Trial]:
    """Trials until so many ends, of these kinds, are reached, of each of these runs in turn."""
    choose, done = random.Random(seed), 0
    wholes = [undisturbed(folder, Whole(name, steps)) for name in runs]
    while done < kills:
        for whole in wholes:
            trial = one_trial(folder / f"trial-{done}", whole, choose, ends)
            done += len(trial.cuts)
            yield trial


def undisturbed(folder: Path, run: Whole) -> Whole:
    """A run with what it leaves; its time is that of the second of two, whose kernels are compiled."""
    for number in range(2):
        place, started = fresh(folder / f"whole-{number}"), time.monotonic()
        code, said = waited(child(place, run, 2, "async", 4))
        seconds = time.monotonic() - started
        assert code == 0, said
        found = digest(place)
        shutil.rmtree(place)
    return Whole(run.name, run.steps, found, seconds)


def one_trial(place: Path, run: Whole, choose: random.Random, ends: Sequence[str]) -> Trial:
    """Up to three ends of a run, and then one that nothing ends."""
    fresh(place)
    cuts = []
    for _ in range(choose.randint(1, 3)):
        cuts.append(cut(place, run, choose, ends))
        if cuts[-1].code == 0 and cuts[-1].how not in ("SIGINT", "SIGTERM"):
            break  # it was complete before
    code, said = waited(child(place, run, *drawn(choose)))
    same = code == 0 and digest(place) == run.digest
    if same:
        shutil.rmtree(place)
    return Trial(run.name, tuple(cuts), same, "" if same else said)


def cut(place: Path, run: Whole, choose: random.Random, ends: Sequence[str]) -> Cut:
    """Start a run and end it, some time after its start or after its first checkpoint."""
    how, after = choose.choice(ends), choose.uniform(0.0, run.seconds)
    devices, strategy, depth = drawn(choose)
    limit = choose.randint(*LIMITS) if how == "full disk" else None
    disk = place.parent / f"{place.name}.disk" if how == POWER else None
    if disk is not None:
        shutil.rmtree(disk, ignore_errors=True)
    process = child(place, run, devices, strategy, depth, limit, disk)
    if limit is None:
        if choose.random() < 0.5:
            await_checkpoint(process, place)
            after /= 4
        time.sleep(after)
        if disk is None:
            os.kill(process.pid, signal.Signals[how])
        else:
            os.killpg(process.pid, signal.SIGKILL)
    code, _ = waited(process)
    if disk is not None and (disk / power.NAMES).exists():
        await_group(process)
        power.fail(place, disk)
    kept = len(list(_kept(place)))
    return Cut(how, round(after, 3), code, strategy, devices, kept)


def drawn(choose: random.Random) -> tuple[int, str, int]:
    """Devices, strategy and depth; kernels are compiled for each depth, so there are two."""
    return choose.randint(1, 4), choose.choice(sorted(STRATEGIES)), choose.choice(DEPTHS)


@dataclass(frozen=True)
class Child:
    """A process, and the file with what it said."""

    pid: int
    said: Path


def child(
    place: Path, run: Whole, devices: int, strategy: str, depth: int, limit: int | None = None, disk: Path | None = None
) -> Child:
    """A copy of this process, which has everything imported, that carries a run out.

    limit: bytes that a file may have; disk: where what is synchronised is kept, as a disk would without power.
    """
    said = place.parent / f"{place.name}.said"
    pid = os.fork()
    if pid:
        with suppress(OSError):  # it did so itself, and may have ended
            os.setpgid(pid, pid)
        return Child(pid, said)
    code = 1
    try:
        os.setpgid(0, 0)  # with its own processes, which a power failure ends too
        opened = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, 1), os.dup2(opened, 2)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if disk is not None:
            power.notes(place, disk)
        carry_out: Callable[..., None] = RUNS[run.name]
        carry_out(place, run.steps, devices, strategy, depth)
        code = 0
    except SystemExit as done:
        code = int(done.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _kept(place: Path) -> Iterator[Path]:
    """The checkpoints of a run, or the traces of a survey."""
    yield from (place / "checkpoints").glob("step-*.h5")
    yield from (place / "traces").glob("*.h5")


def await_group(process: Child) -> None:
    """Return when a killed process and all that it started are gone, which may write until then, or after seconds:
    where nobody waits for orphans, these keep their numbers.
    """
    with suppress(ProcessLookupError):
        for _ in range(2000):
            os.killpg(process.pid, 0)
            time.sleep(0.001)


def await_checkpoint(process: Child, place: Path) -> None:
    """Return when a run has kept something, or has ended; without this most ends of short runs come too early."""
    while not any(_kept(place)) and os.waitid(os.P_PID, process.pid, LOOK) is None:
        time.sleep(0.002)


def waited(process: Child) -> tuple[int, str]:
    """The exit code, negative for a signal, and what was said."""
    _, status = os.waitpid(process.pid, 0)
    return os.waitstatus_to_exitcode(status), process.said.read_text() if process.said.exists() else ""


def fresh(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def digest(place: Path) -> str:
    """Of all datasets of the results, and of the snapshots where there are any."""
    found = hashlib.sha256()
    for file in sorted(place.glob("*.h5")):
        with h5py.File(file) as opened:
            names: list[str] = []
            opened.visit(names.append)
            for name in (name for name in sorted(names) if isinstance(opened[name], h5py.Dataset)):
                found.update(f"{file.name} {name}".encode())
                values = opened[name][()]
                found.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
    return found.hexdigest()
