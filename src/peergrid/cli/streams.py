"""The standard streams of a command: one that is closed, full or no longer read ends no work and loses no results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO


class Lossy:
    """A text stream whose text is lost where writing it raises an error of a kind."""

    def __init__(self, stream: TextIO, kind: type[OSError]) -> None:
        self._stream, self._kind = stream, kind

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        with self._losing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or lose it."""
        with self._losing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except self._kind as error:
            if isinstance(error, BrokenPipeError):
                discard(self._stream)


@contextmanager
def standard_streams() -> Iterator[None]:
    """In the block, errors of standard error, and a reader of standard output that has left, end nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the process that started the command
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    with redirect_stdout(Lossy(sys.stdout, BrokenPipeError)), redirect_stderr(Lossy(sys.stderr, OSError)):
        yield


def discard(stream: TextIO) -> None:
    """From now on lose what is written to a stream, and what is still buffered, so that the exit code is not Python's
    own for it.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
