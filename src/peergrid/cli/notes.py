"""Notes: a sentence for all that a command did otherwise than one may expect, always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def tell(notes: Iterable[str]) -> None:
    """A line for each note."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def warn(sentence: str) -> None:
    """A line about what may not be as it should."""
    print(f"warning: {sentence}", file=sys.stderr, flush=True)


def announce(sentence: str) -> None:
    """A line about what begins."""
    print(sentence, file=sys.stderr, flush=True)
