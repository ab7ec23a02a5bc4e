"""A lock between processes that many hold together or one holds alone, and that nobody waits for for ever.

Linux hands `flock` out in no order: one who wants it alone would wait as long as those who share it overlap. So all
pass a gate, one by one, and leave it with the lock in hand: while one waits there to be alone, nobody else gets in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GATE, LOCK = "gpus.gate", "gpus.lock"  # files in a folder that all know


@contextmanager
def held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Inside, nobody else holds the lock of this folder alone, or nobody else holds it at all. Cannot be nested."""
    import fcntl  # here, since Windows has none

    with (folder / LOCK).open("w") as lock:
        with (folder / GATE).open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            finally:
                fcntl.flock(gate, fcntl.LOCK_UN)  # closing would not do where a forked process has the file, too
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
