"""Files that get their final name only when complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.files import check_regular, reason


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary sibling of `path` to write to: it takes the name when the block ends well, else it is removed.

    Raises UsageError if the folder cannot be written or the disk is full, or what `check_regular` refuses.
    """
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        check_regular(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # so that nothing is written through a link of this name
        yield partial
        _settle(partial)
        partial.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise UsageError(
            f"Room to write '{path}' is expected, got: {reason(error)}; free some space or choose another folder."
        ) from None
    finally:
        with suppress(OSError):  # there is nothing to remove if the folder is no folder
            partial.unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk, so that a name never leads to an empty
    file.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
