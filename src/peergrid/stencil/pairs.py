"""Numbers of twice the precision in expressions: a value and its rounding error, each in the grid's type.

Sums and products without error are those of Dekker (1971) and Knuth; they hold because every operation is rounded once,
as written. `Format` has the figures of a type for them and for the functions (see `elementary`).
"""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.grid import Dtype
from peergrid.stencil.expr import Expr, Number, as_expr

Pair = tuple[Expr, Expr]


@dataclass(frozen=True)
class Format:
    """An IEEE 754 format: the bits of a fraction, the largest exponent."""

    fraction: int
    largest: int

    @property
    def half(self) -> float:
        """The factor by which a value splits into two of half as many digits (Veltkamp)."""
        return 2.0 ** (self.fraction // 2 + 1) + 1

    @property
    def to_whole(self) -> float:
        """A number that is added to others and subtracted again to round them to whole numbers."""
        return 1.5 * 2.0**self.fraction

    @property
    def smallest(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.largest)


FORMATS: dict[Dtype, Format] = {"float32": Format(23, 127), "float64": Format(52, 1023)}


def added(a: Number, b: Number) -> Pair:
    """a + b without error."""
    a, b = as_expr(a), as_expr(b)
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def joined(a: Expr, b: Expr) -> Pair:
    """a + b without error, where |a| is not less than |b|."""
    total = a + b
    return total, b - (total - a)


def halves(kind: Format, a: Expr) -> Pair:
    """Two values of half as many digits, whose sum is `a`."""
    far = a * kind.half
    upper = far - (far - a)
    return upper, a - upper


def multiplied(kind: Format, a: Expr, b: Expr) -> Pair:
    """a · b without error."""
    product = a * b
    (a1, a2), (b1, b2) = halves(kind, a), halves(kind, b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def product(kind: Format, a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    upper, lower = multiplied(kind, a[0], b[0])
    return joined(upper, lower + (a[0] * b[1] + a[1] * b[0]))


def quotient(kind: Format, a: Pair, b: Pair) -> Pair:
    """The quotient of two pairs."""
    upper = a[0] / b[0]
    back, lost = multiplied(kind, upper, b[0])
    return joined(upper, (((a[0] - back) - lost) + a[1] - upper * b[1]) / b[0])


def split(numerator: int, shift: int, digits: tuple[int, ...]) -> tuple[float, ...]:
    """numerator · 2^-shift as a sum of numbers with consecutive groups of binary digits."""
    parts: list[float] = []
    left = numerator
    for count in digits:
        drop = max(left.bit_length() - count, 0)
        part = left >> drop << drop
        parts.append(float(part) * 2.0**-shift)
        left -= part
    return tuple(parts)
