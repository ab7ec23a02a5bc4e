"""A command replaces a file only if the same command wrote it."""

from __future__ import annotations

from pathlib import Path

from peergrid.errors import UsageError
from peergrid.files import check_regular
from peergrid.io.rule import shown


def guard(output: Path, what: str, start: str) -> None:
    """Refuse a path whose folder does not exist, or at which lies anything but a file that begins with `start`.

    Args:
        output: where the file should go.
        what: the file in words, such as 'page'.
        start: how every such file begins.

    Raises:
        UsageError: so it is; writing would fail or lose the file.
    """
    try:
        check_regular(output)
        free = not output.exists() or _begins(output, start)
    except OSError as error:
        raise UsageError(f"'{shown(str(output))}' is no name for a file: {error.strerror}; choose another.") from None
    if not output.parent.is_dir():
        raise UsageError(
            f"'{output}' should lie in an existing folder, but '{output.parent}' is none: create it first."
        )
    if not free:
        raise UsageError(
            f"'{output}' should be free or a {what} to replace, but holds something else: "
            "choose another name or remove it."
        )


def _begins(path: Path, start: str) -> bool:
    """True for a file that is empty or begins so, and can be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(start)) in (b"", start.encode())
    except OSError:
        return False
