"""Notes and warnings of a command: sentences on standard error about what may surprise its user."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def print_notes(notes: Iterable[str]) -> None:
    """Print a line for each note."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def warn(sentence: str) -> None:
    """Print a warning."""
    print(f"warning: {sentence}", file=sys.stderr, flush=True)


def announce(sentence: str) -> None:
    """Print a sentence about what the command does next."""
    print(sentence, file=sys.stderr, flush=True)
