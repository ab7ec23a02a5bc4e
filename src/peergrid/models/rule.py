"""A requirement on a value, in words and as a test; attached to a type with `Annotated`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any


@dataclass(frozen=True)
class Rule:
    """`expected` completes the sentence 'is expected to be ...'; `holds` decides."""

    expected: str
    holds: Callable[[Any], bool]


Finite = Annotated[float, Rule("a finite number", isfinite)]
Positive = Annotated[float, Rule("a positive number", lambda v: isfinite(v) and v > 0)]
NotNegative = Annotated[float, Rule("a number not below 0", lambda v: isfinite(v) and v >= 0)]
AtLeastOne = Annotated[float, Rule("a number not below 1", lambda v: isfinite(v) and v >= 1)]
Count = Annotated[int, Rule("a whole number not below 0", lambda v: v >= 0)]
PositiveCount = Annotated[int, Rule("a whole number not below 1", lambda v: v >= 1)]
Name = Annotated[str, Rule("text that is not empty", lambda v: bool(v.strip()))]
Point = tuple[Finite, Finite]
