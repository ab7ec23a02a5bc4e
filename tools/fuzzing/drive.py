"""One mutated file at a time: a result, one sentence, or a finding."""

from __future__ import annotations

import faulthandler
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzzing.mutate import mutated
from fuzzing.seeds import CORPUS, velocity_hdf5, velocity_npy
from fuzzing.targets import Target
from peergrid.errors import PeergridError

SECONDS = 30  # after which a reader hangs


@dataclass(frozen=True)
class Finding:
    """A file that was neither read nor refused in one sentence; told: the end of what happened."""

    target: str
    seed: int
    contents: bytes
    told: str


class Hangs(Exception):
    """A reader took too long."""


def attempt(target: Target, seed: int) -> Finding | None:
    """Give a reader the file of a number; None where it is read or refused."""
    choose = Random(f"{target.name} {seed}")
    contents = mutated(choose.choice(target.seeds()), choose)
    with tempfile.TemporaryDirectory() as outside:
        folder = Path(outside) / "folder"
        companions(folder)
        path = folder / target.file
        path.write_bytes(contents)
        told = _told(target, path)
        if told is None and (left := sorted({file.name for file in Path(outside).iterdir()} - {folder.name})):
            told = f"files outside the folder: {left}"
    return None if told is None else Finding(target.name, seed, contents, told)


def _told(target: Target, path: Path) -> str | None:
    """What a reader did with a file that it should not do."""
    try:
        with limited(SECONDS):
            target.take(path)
    except PeergridError as error:
        if "\n" in str(error) or not str(error).isprintable():
            return f"not one plain line: {str(error)!r}"
    except BaseException:
        return traceback.format_exc()[-3000:]
    return None


def companions(folder: Path) -> None:
    """A folder with the files that models and command lines of the corpus name."""
    shutil.copytree(CORPUS, folder, dirs_exist_ok=True)
    (folder / "velocity.npy").write_bytes(velocity_npy()[0])
    (folder / "cube.h5").write_bytes(velocity_hdf5()[0])


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Hangs` where the block takes longer; what does not return to Python ends the process with its stack."""

    def late(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    others, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, others)
        signal.signal(signal.SIGALRM, before)
