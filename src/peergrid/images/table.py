"""The new value for every pixel value, and the straight line through these if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peergrid.grid import Grid
from peergrid.images.formula import Formula
from peergrid.simulate import run
from peergrid.stencil import Problem, minimum, stencil, where
from peergrid.stencil.expr import as_expr

Pixels = np.ndarray[Any, np.dtype[np.uint8 | np.uint16]]
FRACTION = 30  # bits after the point of a line, so that slopes up to 2 are whole numbers of 32 bits
THIRDS = 120  # of the slopes left out at a time


@dataclass(frozen=True, slots=True)
class Line:
    """New value: (slope * old + offset) >> 30, in whole numbers; slope of 32 bits, offset of 64."""

    slope: int
    offset: int

    def values(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The new values of 0 to count - 1."""
        return (np.arange(count, dtype=np.int64) * self.slope + self.offset) >> FRACTION


def table(formula: Formula, dtype: np.dtype[Any]) -> Pixels:
    """The new values of all pixels of a type, shape (256,) or (65536,).

    The formula is evaluated in single precision as written; results are truncated to whole numbers and clamped to the
    range of the type; NaN becomes 0.
    """
    most = np.iinfo(dtype).max

    @stencil
    def pixel(x: Any) -> None:
        new = as_expr(formula(x[0]))  # a formula may be a number alone
        x.next[0] = where(new > 0, minimum(new, float(most)), 0.0)

    values = np.arange(most + 1, dtype=np.float32)
    line = Grid(values.shape, boundary="periodic")
    return run(Problem.of(pixel(line.field("x", init=values))), 1, devices="cpu:1").fields["x"].astype(dtype)


def straight(values: Pixels) -> Line | None:
    """The line that gives exactly these values, or None.

    A slope s fits if an offset lies between all y - s x and all y + 1 - s x. The room between these is a concave
    function of s, so its largest value is found by leaving out a third of the slopes at a time.
    """
    x, y = np.arange(len(values)), values.astype(np.float64)

    def room(slope: float) -> tuple[float, float]:
        rest = y - slope * x
        return float(rest.max()), float(rest.min()) + 1

    def width(slope: float) -> float:
        least, most = room(slope)
        return most - least

    low, high = -float(len(values)), float(len(values))
    for _ in range(THIRDS):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if width(one) > width(two) else (one, high)
    slope = round((low + high) / 2 * 2**FRACTION)
    if abs(slope) >= 2**31:
        return None
    line = Line(slope, round(sum(room(slope / 2**FRACTION)) / 2 * 2**FRACTION))
    return line if np.array_equal(line.values(len(values)), values) else None
