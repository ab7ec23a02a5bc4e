"""One mutated file at a time: a result, one sentence, or a finding."""

from __future__ import annotations

import shutil
import signal
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzzing.mutate import mutated
from fuzzing.targets import CORPUS, Target
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
    with tempfile.TemporaryDirectory() as folder:
        companions(Path(folder))
        path = Path(folder) / target.file
        path.write_bytes(contents)
        try:
            with limited(SECONDS):
                target.take(path)
        except PeergridError as error:
            if "\n" in str(error) or not str(error).isprintable():
                return Finding(target.name, seed, contents, f"not one plain line: {str(error)!r}")
        except BaseException:
            return Finding(target.name, seed, contents, traceback.format_exc()[-3000:])
    return None


def companions(folder: Path) -> None:
    """The files that models and command lines of the corpus name."""
    for name in ("cells.npy", "samples.csv", "model.toml"):
        shutil.copy(CORPUS / name, folder)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Hangs` where the block takes longer."""

    def late(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    others, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, others)
        signal.signal(signal.SIGALRM, before)
