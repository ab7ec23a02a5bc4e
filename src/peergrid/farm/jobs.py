"""Jobs from inputs: the words of a command with the input in place of `{}`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from peergrid.errors import UsageError

MOST = 1 << 26  # characters of the inputs of a farm
LONGEST = (1 << 17) - 1  # bytes of a word of a command, by Linux
PLACE = re.compile(r"\{(|stem|number)\}")


@dataclass(frozen=True)
class Job:
    """One input and the words of its command; jobs are numbered from 1."""

    number: int
    input: str
    words: tuple[str, ...]


def make_jobs(command: Sequence[str], inputs: Iterable[str]) -> tuple[Job, ...]:
    """A job for each input: `{}` is the input, `{stem}` its file name without folder and ending, `{number}` counts.

    Raises UsageError for a command that is empty or has no place for inputs, without inputs, and for inputs that no
    command can have.
    """
    if not any(PLACE.search(word) for word in command):
        raise UsageError(
            f"After '--' a command with '{{}}' in place of the input is expected, got {_quoted(command)}; "
            "such as: peergrid farm -i *.toml -- peergrid run {}."
        )
    if not PLACE.search(command[0]) and shutil.which(command[0]) is None:
        raise UsageError(f"'{command[0]}' should be a program that can be run, but none of that name was found.")
    jobs = tuple(Job(number, text, _filled(command, text, number)) for number, text in enumerate(inputs, start=1))
    if not jobs:
        raise UsageError("At least one input is expected, got none: name them with -i, or their file with --lines.")
    for job in jobs:
        _check_words(job)
    return jobs


def read_lines(file: Path | TextIO) -> list[str]:
    """The inputs of a file: its lines that are not empty, without a byte order mark. Raises UsageError if it cannot be
    read.
    """
    try:
        with file.open() if isinstance(file, Path) else nullcontext(file) as opened:  # a pipe is welcome
            text = opened.read(MOST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"The inputs should be the lines of '{file}', but {reason}.") from None
    if len(text) > MOST:
        raise UsageError(f"The inputs should be lines of at most {MOST:,} characters in all; '{file}' has more.")
    return [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]


def _check_words(job: Job) -> None:
    """Raise UsageError for an input that makes a word with a zero byte, or one too long for a command."""
    if "\0" in job.input:
        raise UsageError(
            f"Input {job.number} has a zero byte, such as 'find -print0' writes; separate inputs by lines."
        )
    longest = max(len(os.fsencode(word)) for word in job.words)
    if longest > LONGEST:
        raise UsageError(
            f"A word of a command has at most {LONGEST:,} bytes, but with input {job.number} one has {longest:,}; "
            "write such an input to a file, and name the file."
        )


def _filled(command: Sequence[str], text: str, number: int) -> tuple[str, ...]:
    places = {"": text, "stem": Path(text).stem, "number": str(number)}
    return tuple(PLACE.sub(lambda found: places[found[1]], word) for word in command)


def _quoted(command: Sequence[str]) -> str:
    return f"'{' '.join(command)}'" if command else "nothing"
