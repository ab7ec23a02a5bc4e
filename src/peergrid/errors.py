"""The kinds of error, each with the exit code of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


def extra(name: str) -> str:
    """The way to install one of peergrid's extras, for messages about a missing package.

    No package index is named, as peergrid is installed from a folder of sources, or from a wheel made of it.
    """
    return f"install peergrid with its extra '{name}', such as pip install '.[{name}]' in its source folder"


class PeergridError(Exception):
    """Base of every error meant for the user: one sentence with what was expected, what came, what to do."""

    exit_code: ClassVar[int] = 1


class CheckFailed(PeergridError):
    """A check found a fault: a race, a stale read, a figure outside its tolerance."""

    exit_code = 1


class UsageError(PeergridError):
    """A command line, a model file or a call that is not valid."""

    exit_code = 2


@contextmanager
def about(file: str) -> Iterator[None]:
    """Prefix a UsageError in the block with the name of a file, unless it has one; '' changes nothing."""
    try:
        yield
    except UsageError as error:
        if not file or str(error).startswith((f"{file}: ", f"{file}, line ")):
            raise
        raise UsageError(f"{file}: {error}") from None


class NotInAStencil(UsageError, TypeError):
    """An operation that stencils do not have: a function of Python, a condition in an `if`."""


class DoesNotFit(PeergridError):
    """The problem needs more memory than the devices have."""

    exit_code = 3


class Unstable(PeergridError):
    """A field became NaN or infinite, or the time step cannot be stable."""

    exit_code = 4


class DeviceFault(PeergridError):
    """A device or a link failed, or a signal did not come in time."""

    exit_code = 5
