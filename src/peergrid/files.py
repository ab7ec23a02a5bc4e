"""Files that a command or a model names: regular ones of limited size are read, and new ones appear when complete."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import get_native_id

from peergrid.errors import UsageError

SYSTEM_WORDS = re.compile(r"error message = '([^']+)'")  # in HDF5's text


def check_plain(path: Path, most: int) -> None:
    """Raise OSError for a path that is no regular file (reading a pipe may never end), or one of more than `most`
    bytes.
    """
    if "\0" in str(path):
        raise OSError("a name with a NUL character")
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise OSError("it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it is no plain file")
    if found.st_size > most:
        raise OSError(f"it has {found.st_size:,} bytes, more than {most:,}")


def read_plain(path: Path, most: int) -> bytes:
    """The contents of a regular file of at most `most` bytes; raises OSError as `check_plain` does."""
    check_plain(path, most)
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as file:
        contents = file.read(most + 1)
    if len(contents) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return contents


def check_regular(path: Path) -> None:
    """Raise UsageError for a path at which lies something else than a regular file, which a new file would replace."""
    if path.exists() and not path.is_file():
        raise UsageError(
            f"'{path}' is expected to be free or a file to replace, got a folder, a device or a pipe; choose another "
            "name."
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """As `draft`, in a folder that is made if it is missing, and such that the new file outlives a loss of power.

    Raises UsageError if the folder cannot be written or the disk is full, or what `check_regular` refuses.
    """
    try:
        check_regular(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft(path) as partial:
            yield partial
            _settle(partial)
        _settle(path.parent)
    except OSError as error:
        raise no_room(path, error) from None


def no_room(path: Path, error: OSError) -> UsageError:
    """The error of a file that cannot be written."""
    return UsageError(
        f"Room to write '{path}' is expected, got: {reason(error)}; free some space or choose another folder."
    )


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A temporary sibling of `path` to write to: it takes the name when the block ends well, else it is removed. Each
    thread of the machine has its own.
    """
    partial = path.with_name(f".{path.stem}.{get_native_id()}.partial{path.suffix}")
    try:
        partial.unlink(missing_ok=True)  # so that nothing is written through a link of this name
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):  # there is nothing to remove if the folder is no folder
            partial.unlink(missing_ok=True)


@contextmanager
def reserved(folder: Path, size: int) -> Iterator[None]:
    """Room of `size` bytes in a folder, which other files do not take before the block ends; none where it cannot be
    reserved. A process that is killed leaves nothing.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            nameless = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            os.posix_fallocate(nameless.fileno(), 0, size)
        yield


def _settle(path: Path) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk, so that a name never leads to an empty
    file.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def reason(error: Exception) -> str:
    """The text of an error on one line; of an error of HDF5 the system's words in it, if it has any."""
    words = str(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    system = SYSTEM_WORDS.search(words)
    return system[1] if system else words.splitlines()[0][:200]
