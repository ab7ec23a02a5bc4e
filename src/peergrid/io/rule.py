"""A requirement on a value, in words and as a test; attached to a type with `Annotated`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, get_type_hints

from peergrid.arguments import brief, is_number
from peergrid.errors import UsageError

LARGEST = 1e20
"""Of numbers with a unit: squares and quotients of such numbers stay far from the ends of what floats can hold."""

FARTHEST = 1e36
"""Of other numbers: what single precision can hold, so that a field that grows beyond is noticed in the run."""

LONGEST = 100
"""Characters of a title and of names, which files and their contents are called after."""


@dataclass(frozen=True)
class Rule:
    """`expected` completes the sentence 'is expected to be ...'; `holds` decides."""

    expected: str
    holds: Callable[[Any], bool]


def printable(text: str) -> bool:
    """True for a text without control characters, such as line ends, NUL and terminal commands."""
    return all(character.isprintable() for character in text)


def shown(text: str, most: int = 60) -> str:
    """A text for a message: shortened to `most` characters, without control characters."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


IN_RANGE = Rule("a number between -1e36 and 1e36", lambda v: abs(v) <= FARTHEST)
NEITHER_END = Rule("a number from 1e-20 to 1e20", lambda v: 1 / LARGEST <= v <= LARGEST)
COUNTABLE = Rule("a whole number below 1e18", lambda v: v < 10**18)
PRINTABLE = Rule("text without control characters", printable)

Finite = Annotated[float, Rule("a finite number", isfinite), IN_RANGE]
Positive = Annotated[float, Rule("a positive number", lambda v: isfinite(v) and v > 0), NEITHER_END]
NotNegative = Annotated[float, Rule("a number not below 0", lambda v: isfinite(v) and v >= 0), IN_RANGE]
AtLeastOne = Annotated[float, Rule("a number not below 1", lambda v: isfinite(v) and v >= 1), IN_RANGE]
Count = Annotated[int, Rule("a whole number not below 0", lambda v: v >= 0), COUNTABLE]
PositiveCount = Annotated[int, Rule("a whole number not below 1", lambda v: v >= 1), COUNTABLE]
FileName = Annotated[str, Rule("text that is not empty", lambda v: bool(v.strip())), PRINTABLE]
Title = Annotated[
    str,
    Rule("text", lambda v: isinstance(v, str)),
    Rule(f"text of at most {LONGEST} characters", lambda v: len(v) <= LONGEST),
    PRINTABLE,
]
Name = Annotated[
    str,
    Rule("text that is not empty", lambda v: bool(v.strip())),
    Rule(f"text of at most {LONGEST} characters", lambda v: len(v) <= LONGEST),
    PRINTABLE,
]
Point = tuple[Finite, Finite]


def check_numbers(described: Any) -> None:
    """Raise UsageError if a number of a dataclass, such as a waveform made in Python, breaks a rule of its type."""
    name = type(described).__name__
    for field, hint in get_type_hints(type(described), include_extras=True).items():
        rules = [rule for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, Rule)]
        value = getattr(described, field)
        for rule in rules:
            if not is_number(value) or not rule.holds(value):
                raise UsageError(f"{name}.{field} is expected to be {rule.expected}, got {brief(value)}.")
