"""The kinds of arguments that public calls have in common, as tests of one value of any type."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Set
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from peergrid.errors import UsageError

Whole = tuple[int, ...]
MOST = 10**18
"""Of cells, steps and bytes: what 64 bits count, with room for their size."""


def is_whole(value: object) -> bool:
    """True for a whole number of Python or NumPy, but not for truth values."""
    if isinstance(value, bool):
        return False
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def is_number(value: object) -> bool:
    """True for a real number of Python or NumPy, but not for truth values."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def whole(values: Any) -> Whole | None:
    """The numbers of what gives them in order, as Python integers; None if they are no whole numbers."""
    unordered = isinstance(values, str | bytes | Mapping | Set) or getattr(values, "ndim", 1) == 0
    if unordered or not isinstance(values, Iterable):
        return None
    given = tuple(values)
    return tuple(map(index, given)) if all(map(is_whole, given)) else None


def numbers(values: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Real numbers, of any shape, in double precision; None for anything else, such as rows of several lengths, or
    arrays with masked values.
    """
    if np.ma.is_masked(values):
        return None
    try:
        found = np.asarray(values)
    except (ValueError, TypeError):
        return None
    return found.astype(np.float64) if found.dtype.kind in "fiu" or not found.size else None


def is_one_of(value: object, names: Collection[str]) -> bool:
    """True for a text among the names."""
    return isinstance(value, str) and value in names


def brief(value: object, most: int = 60) -> str:
    """A short text of any value on one line, for a sentence."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def check_name(what: str, name: object) -> None:
    """Raise UsageError for a name that is no text, or that no file or message can show; what: as in 'A field'."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise UsageError(
            f"{what} has a name, text that is not empty and without control characters, got {brief(name)}."
        )


def check_steps(steps: Any) -> None:
    """Raise UsageError for what is no number of steps that a run can make."""
    if not is_whole(steps) or steps < 0:
        raise UsageError(f"A run takes zero or more whole steps, got {brief(steps)}.")
    if steps > MOST:
        raise UsageError(f"A run takes at most {MOST:,} steps, got {steps:,}.")


def check_kind(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError for an argument that is of none of the kinds; expected: as in 'a NumPy array'."""
    if not isinstance(value, kinds):
        raise UsageError(f"'{name}' takes {expected}, got {brief(value)}.")


def check_array(name: str, value: object, axes: int, kinds: str, of: str) -> None:
    """Raise UsageError for what is no NumPy array of so many axes; kinds: letters of NumPy's types; of: their name."""
    if not isinstance(value, np.ndarray) or value.ndim != axes or value.dtype.kind not in kinds:
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else brief(value)
        raise UsageError(
            f"'{name}' takes a NumPy array of {of} with {axes} {'axis' if axes == 1 else 'axes'}, got {got}."
        )


def check_flag(name: str, value: object) -> None:
    """Raise UsageError for an argument that is neither True nor False."""
    if not isinstance(value, bool):
        raise UsageError(f"'{name}' is True or False, got {brief(value)}.")


def path_of(name: str, value: object) -> Path:
    """The path that an argument gives. Raises UsageError for what is none."""
    if isinstance(value, str | os.PathLike):
        found = os.fspath(value)
        if isinstance(found, str) and found and "\0" not in found:
            return Path(found)
    raise UsageError(f"'{name}' takes a path, text or a pathlib.Path, got {brief(value)}.")
