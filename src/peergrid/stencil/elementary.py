"""exp, log, sin, cos, tanh and powers as expressions of basic operations, with the same bits on all devices.

Each is a reduction of its argument to a short interval, a Taylor series there, and a power of two (Muller et al.,
Handbook of Floating-Point Arithmetic, chapter 10). Values whose errors would grow are pairs (see `pairs`), so that the
error of results is below one unit in the last place. The coefficients are those of the series, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count, takewhile
from math import factorial, inf, log, nan, pi

from peergrid.grid import Dtype
from peergrid.stencil.expr import (
    Const,
    Expr,
    Function,
    FunctionName,
    Unary,
    as_expr,
    equal,
    maximum,
    minimum,
    ordered,
    sqrt,
    where,
)  # fmt: skip
from peergrid.stencil.pairs import FORMATS, Format, Pair, added, joined, multiplied, product, quotient, split

SHIFT = 256  # binary digits after the point of the next numbers
LN_2 = 0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A0D175B8BAAFA2C
HALF_PI = 0x1921FB54442D18469898CC51701B839A252049C1114CF98E804177D4C76273645
THIRD = (1 << SHIFT) // 3
QUARTERS = {23: 10, 52: 20}  # binary digits of the largest number of right angles, by those of a fraction
ZERO = Const(0.0)


def expanded(value: Expr, dtype: Dtype) -> Expr:
    """The value with functions replaced by basic operations, for a grid of this type."""
    made: dict[Expr, Expr] = {}
    for part in ordered((value,)):
        operands = tuple(made[operand] for operand in part.operands)
        if isinstance(part, Function):
            made[part] = BUILDERS[part.name](FORMATS[dtype], *operands)
        else:
            made[part] = part if operands == part.operands else type(part)(*part.label, *operands)
    return made[value]


def largest_angle(kind: Format) -> float:
    """The angle beyond which sin and cos are NaN: 1,608 in single precision, 1,647,099 in double precision."""
    return float(int(2 ** QUARTERS[kind.fraction] * pi / 2))


def _exp(kind: Format, x: Expr) -> Expr:
    return _power_of_e(kind, (x, ZERO))


def _log(kind: Format, x: Expr) -> Expr:
    regular = (x > 0) & (x < inf)
    upper, lower = _logarithm(kind, where(regular, x, 1.0), _plain_tail)
    return where(regular, upper + lower, where(x < 0, nan, where(equal(x, 0), -inf, x)))


def _sin(kind: Format, x: Expr) -> Expr:
    quarter, angle = _within_quarter(kind, x)
    value = where(equal(abs(quarter), 1), _cosine(kind, angle), _sine(kind, angle))
    negative = equal(abs(quarter), 2) | equal(quarter, -1)
    return where(abs(x) <= largest_angle(kind), where(negative, -value, value), nan)


def _cos(kind: Format, x: Expr) -> Expr:
    quarter, angle = _within_quarter(kind, x)
    value = where(equal(abs(quarter), 1), _sine(kind, angle), _cosine(kind, angle))
    negative = equal(abs(quarter), 2) | equal(quarter, 1)
    return where(abs(x) <= largest_angle(kind), where(negative, -value, value), nan)


def _tanh(kind: Format, x: Expr) -> Expr:
    """(e^2x - 1) / (e^2x + 1), of a pair for e^2x - 1."""
    size, almost_one = abs(x), kind.fraction / 2
    times, (upper, lower) = _without_ln_2(kind, (2 * minimum(size, almost_one), ZERO))
    small = joined(upper, lower + upper * upper * _exp_series(kind, upper))
    power = Unary("power_of_two", times)
    more, lost = added(power - 1, power * small[0])
    less_one = joined(more, lost + power * small[1])
    more, lost = added(less_one[0], 2.0)
    value = quotient(kind, less_one, (more, lost + less_one[1]))
    found = where(size < 2.0 ** (-kind.fraction // 2 - 2), size, value[0] + value[1])
    return where(x > 0, found, where(x < 0, -found, x))


def _power(kind: Format, x: Expr, y: Expr) -> Expr:
    """x^y as `pow` of C, except that zeros have no sign; and 1^NaN, and powers of -inf that are not whole, are NaN."""
    if y is Const(0.5):
        return sqrt(x)
    size, far = abs(x), 2.0 ** (kind.fraction + 12)  # such powers of numbers other than 1 are 0 or infinite
    regular = (size > 0) & (size < inf)
    upper, lower = _logarithm(kind, where(regular, size, 1.0), _exact_tail)
    times = maximum(minimum(y, far), -far)
    main, lost = multiplied(kind, upper, times)
    grows = where(size > 1, y, -y)
    value = where(regular, _power_of_e(kind, (main, lost + lower * times)), where(grows > 0, inf, 0.0))
    whole, odd = _is_whole(kind, abs(y)), ~_is_whole(kind, abs(y) * 0.5)
    value = where(x < 0, where(whole, where(odd, -value, value), nan), where(equal(x, x), value, x))
    return where(equal(y, 0), 1.0, where(equal(y, y), value, y))


def _is_whole(kind: Format, size: Expr) -> Expr:
    """The condition that a number of at least 0 is whole."""
    all_whole = 2.0**kind.fraction
    return (size >= all_whole) | equal((size + all_whole) - all_whole, size)


def _power_of_e(kind: Format, x: Pair) -> Expr:
    """e^x, for a pair whose second part is small."""
    most = (kind.largest + 2) * log(2)
    least = -(kind.largest + kind.fraction + 2) * log(2)
    upper = minimum(maximum(x[0], least), most)
    lower = x[1] if x[1] is ZERO else where(equal(upper, x[0]), x[1], 0.0)
    times, (rest, small) = _without_ln_2(kind, (upper, lower))
    value = 1 + (rest + (small + rest * rest * _exp_series(kind, rest)))
    first = _rounded(kind, times * 0.5)  # in two steps, as one factor alone may overflow
    return value * Unary("power_of_two", first) * Unary("power_of_two", times - first)


def _without_ln_2(kind: Format, x: Pair) -> tuple[Expr, Pair]:
    """The whole number of times that ln 2 is in a number, and the remainder."""
    times = _rounded(kind, x[0] * (1 / log(2)))
    large, small = _ln_2(kind)
    upper, lower = added(x[0] - times * large, -(times * small))
    return times, (upper, lower) if x[1] is ZERO else added(upper, lower + x[1])


def _ln_2(kind: Format) -> tuple[Expr, Expr]:
    """ln 2 as a number whose products with exponents are exact, and the rest."""
    digits = kind.fraction + 1 - (kind.largest + kind.fraction + 2).bit_length()
    large, small = split(LN_2, SHIFT, (digits, kind.fraction + 1))
    return Const(large), Const(small)


def _logarithm(kind: Format, x: Expr, tail: Callable[[Format, Pair], Pair]) -> Pair:
    """The natural logarithm of a positive number, by that of m from √½ to √2: ln m = 2 artanh((m - 1) / (m + 1)).

    tail: artanh s - s, of the pair s.
    """
    raised = 2.0 ** (kind.fraction + 1)
    tiny = x < kind.smallest
    normal = where(tiny, x * raised, x)
    exponent = Unary("exponent", normal)
    doubled = normal * Unary("power_of_two", 1 - exponent)  # from 2 to 4
    large = doubled > 2 * 2**0.5
    m = doubled * where(large, 0.25, 0.5)
    times = exponent - where(tiny, kind.fraction + 1.0, 0.0) + where(large, 1.0, 0.0)
    s = quotient(kind, (m - 1, ZERO), added(m, 1.0))
    more = tail(kind, s)
    ln_2, rest = _ln_2(kind)
    sum_1, lost_1 = added(times * ln_2, 2 * s[0])
    sum_2, lost_2 = added(sum_1, 2 * more[0])
    return joined(sum_2, lost_2 + (lost_1 + (times * rest + 2 * (s[1] + more[1]))))


def _plain_tail(kind: Format, s: Pair) -> Pair:
    z = s[0] * s[0]
    return s[0] * (z * _series(kind, z, 0.03, ((1 / (2 * n + 3)) for n in count()))), ZERO


def _exact_tail(kind: Format, s: Pair) -> Pair:
    """As a pair, for powers, whose exponents multiply its error."""
    upper, lower = multiplied(kind, s[0], s[0])
    z = upper, lower + 2 * (s[0] * s[1])
    third, rest = split(THIRD, SHIFT, (kind.fraction + 1,) * 2)
    sums = joined(Const(third), upper * _series(kind, upper, 0.03, ((1 / (2 * n + 5)) for n in count())))
    return product(kind, product(kind, s, z), (sums[0], sums[1] + rest))


def _within_quarter(kind: Format, x: Expr) -> tuple[Expr, Pair]:
    """The number of right angles in an angle, from -2 to 2, and the remaining angle, at most π/4."""
    angle = where(abs(x) <= largest_angle(kind), x, 0.0)
    times = _rounded(kind, angle * (2 / pi))
    digits = kind.fraction + 1 - QUARTERS[kind.fraction]
    first, second, *others = split(HALF_PI, SHIFT, (digits,) * (-(-(2 * kind.fraction + 40) // digits)))
    upper, lower = added(angle - times * first, -(times * second))
    least: Expr = ZERO
    for part in others:
        upper, lost = added(upper, -(times * part))
        lower, rest = added(lower, lost)
        least = least + rest
    return times - 4 * _rounded(kind, times * 0.25), added(upper, lower + least)


def _sine(kind: Format, angle: Pair) -> Expr:
    upper, lower = angle
    z = upper * upper
    series = _series(kind, z, 0.62, ((-1) ** (n + 1) / factorial(2 * n + 3) for n in count()))
    return upper + (lower * (1 - z * 0.5) + upper * z * series)


def _cosine(kind: Format, angle: Pair) -> Expr:
    upper, lower = angle
    z = upper * upper
    half = z * 0.5
    series = _series(kind, z, 0.62, ((-1) ** n / factorial(2 * n + 4) for n in count()))
    most = 1 - half
    return most + (((1 - most) - half) + (z * z * series - upper * lower))


def _exp_series(kind: Format, x: Expr) -> Expr:
    """(e^x - 1 - x) / x²."""
    return _series(kind, x, 0.35, (1 / factorial(n + 2) for n in count()))


def _series(kind: Format, x: Expr, largest: float, coefficients: Iterable[float]) -> Expr:
    """The sum of coefficients times powers of x, by Horner's rule, with the terms that are significant up to the
    largest x.
    """
    least = 2.0 ** (-kind.fraction - 6)
    kept = [c for _, c in takewhile(lambda one: abs(one[1]) * largest ** one[0] > least, enumerate(coefficients))]
    value = as_expr(kept.pop())
    while kept:
        value = value * x + kept.pop()
    return value


def _rounded(kind: Format, x: Expr) -> Expr:
    """The nearest whole number, for numbers much smaller than 2 to the number of fraction digits."""
    return (x + kind.to_whole) - kind.to_whole


BUILDERS: Mapping[FunctionName, Callable[..., Expr]] = {
    "exp": _exp,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
    "tanh": _tanh,
    "power": _power,
}
