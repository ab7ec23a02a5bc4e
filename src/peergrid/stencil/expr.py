"""The expressions of a cell's update: a small frozen graph of IEEE basic operations.

Only operations whose result IEEE 754 defines to the last bit are evaluated (+ - * / sqrt, minimum, maximum,
comparisons, selection, exponents), so that every executor computes the same bits. An expression is evaluated exactly as
written, in the grid's dtype: nothing is reassociated, contracted or folded. Functions such as exp are expressions of
these operations; they are kept by name until the grid's type is known (see `elementary`).

Expressions are hash-consed: equal ones are one object (see `interned`), so that comparing and hashing are fast, and a
value that is used many times is stored, and computed, once (see `program`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from struct import pack
from typing import Any, Literal, NoReturn, TypeGuard, Union

from peergrid.arguments import is_whole
from peergrid.errors import NotInAStencil
from peergrid.grid import Index
from peergrid.stencil.interned import Interned

UnaryOp = Literal["neg", "abs", "sqrt", "not", "power_of_two", "exponent"]
BinaryOp = Literal["add", "sub", "mul", "div", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or"]
COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
LOGICAL = frozenset({"and", "or", "not"})
FunctionName = Literal["exp", "log", "sin", "cos", "tanh", "power"]

Number = Union["Expr", int, float]

LONGEST_SHOWN = 4000  # characters of an expression that is shown in full


class Expr(metaclass=Interned):
    """A value of a stencil, recorded as an expression tree; operators combine expressions to larger ones."""

    __slots__ = ("__weakref__",)

    @property
    def label(self) -> tuple[object, ...]:
        """The arguments, before the operands, that distinguish nodes of one class with the same operands."""
        return ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions that the value is computed from, in order; its last arguments."""
        return ()

    @property
    def is_condition(self) -> bool:
        """True if the value is a condition rather than a number."""
        return False

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of equal expressions of a class."""
        return (*self.label, *self.operands)

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[object, ...]]:
        """For pickle and copy: every distinct part once, for any depth of nesting."""
        parts = ordered((self,))
        number = {part: n for n, part in enumerate(parts)}
        return _rebuilt, (tuple((type(p), p.label, tuple(number[o] for o in p.operands)) for p in parts),)

    def __repr__(self) -> str:
        parts = ordered((self,))
        text: dict[Expr, str] = {}
        for part in parts:
            inside = ", ".join([*map(repr, part.label), *(text[operand] for operand in part.operands)])
            text[part] = f"{type(part).__name__}({inside})"
            if len(text[part]) > LONGEST_SHOWN:
                return f"<expression of {len(parts)} parts>"
        return text[self]

    def __getitem__(self, offset: object) -> NoReturn:
        raise NotInAStencil("A number of a stencil has no cells; use it without [...], or give a field.")

    def __add__(self, other: Number) -> Expr:
        return Binary("add", self, as_expr(other))

    def __radd__(self, other: Number) -> Expr:
        return Binary("add", as_expr(other), self)

    def __sub__(self, other: Number) -> Expr:
        return Binary("sub", self, as_expr(other))

    def __rsub__(self, other: Number) -> Expr:
        return Binary("sub", as_expr(other), self)

    def __mul__(self, other: Number) -> Expr:
        return Binary("mul", self, as_expr(other))

    def __rmul__(self, other: Number) -> Expr:
        return Binary("mul", as_expr(other), self)

    def __truediv__(self, other: Number) -> Expr:
        return Binary("div", self, as_expr(other))

    def __rtruediv__(self, other: Number) -> Expr:
        return Binary("div", as_expr(other), self)

    def __pow__(self, power: Number) -> Expr:
        if not is_whole(power) or not 1 <= power <= 8:
            return Function("power", self, as_expr(power))
        result: Expr = self
        for _ in range(int(power) - 1):
            result = result * self
        return result

    def __rpow__(self, base: Number) -> Expr:
        return Function("power", as_expr(base), self)

    def __neg__(self) -> Expr:
        return Unary("neg", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return Unary("abs", self)

    def __lt__(self, other: Number) -> Expr:
        return Binary("lt", self, as_expr(other))

    def __le__(self, other: Number) -> Expr:
        return Binary("le", self, as_expr(other))

    def __gt__(self, other: Number) -> Expr:
        return Binary("gt", self, as_expr(other))

    def __ge__(self, other: Number) -> Expr:
        return Binary("ge", self, as_expr(other))

    def __eq__(self, other: object) -> bool:
        """True for the same expression; whether values are equal is a condition, which only `equal` makes."""
        if isinstance(other, Real):
            raise NotInAStencil(
                "A stencil's value is known only when it runs, and == and != compare expressions: use "
                f"peergrid.equal(value, {shown(other)}), or ~ of it, in peergrid.where."
            )
        return self is other

    __hash__ = object.__hash__

    def __and__(self, other: Number) -> Expr:
        return Binary("and", _condition(self), _condition(as_expr(other)))

    def __or__(self, other: Number) -> Expr:
        return Binary("or", _condition(self), _condition(as_expr(other)))

    def __rand__(self, other: Number) -> Expr:
        """For `u[0, 0] > 0 & u[0, 0] < 1`, of which Python makes `0 & u[0, 0]` first."""
        return self & other

    def __ror__(self, other: Number) -> Expr:
        return self | other

    def __invert__(self) -> Expr:
        return Unary("not", _condition(self))

    def _no_operation(self, other: object) -> NoReturn:
        raise NotInAStencil(f"A stencil has no %, //, @, ^, divmod and no shifts. {KNOWN}")

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __matmul__ = __rmatmul__ = _no_operation
    __divmod__ = __rdivmod__ = _no_operation
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _no_operation

    def __bool__(self) -> bool:
        raise NotInAStencil(
            "A stencil's value is known only when it runs: use peergrid.where(condition, a, b), &, |, minimum and "
            "maximum in place of if, and, or, min and max."
        )

    def _no_number(self, *_: object) -> NoReturn:
        raise NotInAStencil(f"A stencil's value is known only when it runs, so no function of Python takes it. {KNOWN}")

    __float__ = __int__ = __complex__ = __round__ = __trunc__ = _no_number

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        """The operation of a NumPy scalar or function on an expression, where a stencil has the same."""
        known = UFUNCS.get(function.__name__)
        if known is None or method != "__call__" or options:
            raise NotInAStencil(f"A stencil has no numpy.{function.__name__}. {KNOWN}")
        return known(*(as_expr(one.item() if getattr(one, "shape", None) == () else one) for one in inputs))

    def __array_function__(self, function: Callable[..., Any], *_: object) -> NoReturn:
        raise NotInAStencil(f"A stencil has no numpy.{function.__name__}. {KNOWN}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Expr):
    """A literal of the stencil's source, rounded once to the grid's dtype.

    Two are equal if their bits are: 0.0 differs from -0.0, and a NaN equals itself.
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))

    @property
    def label(self) -> tuple[object, ...]:
        return (self.value,)

    @property
    def identity(self) -> tuple[object, ...]:
        return (pack("d", self.value),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Param(Expr):
    """A number given when the stencil is applied; `key` is its place in `Problem.params`."""

    key: str

    @property
    def label(self) -> tuple[object, ...]:
        return (self.key,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Read(Expr):
    """The value of a field at the cell shifted by `offset`, before this stage writes it."""

    field: str
    offset: Index

    @property
    def label(self) -> tuple[object, ...]:
        return (self.field, self.offset)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Now(Expr):
    """The sample of a signal for the step being computed."""

    signal: str

    @property
    def label(self) -> tuple[object, ...]:
        return (self.signal,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Expr):
    """An operation on one value.

    `power_of_two` is 2 to the nearest whole number, as long as that is a normal number; `exponent` is the largest whole
    number n with 2^n not above the size of a normal number. For other values the results are the same on all devices,
    except for NaN.
    """

    op: UnaryOp
    a: Expr

    @property
    def label(self) -> tuple[object, ...]:
        return (self.op,)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.a,)

    @property
    def is_condition(self) -> bool:
        return self.op == "not"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Expr):
    op: BinaryOp
    a: Expr
    b: Expr

    @property
    def label(self) -> tuple[object, ...]:
        return (self.op,)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.a, self.b)

    @property
    def is_condition(self) -> bool:
        return self.op in COMPARISONS or self.op in LOGICAL


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Where(Expr):
    """`a` in cells where the condition holds, `b` in the others; both are evaluated."""

    condition: Expr
    a: Expr
    b: Expr

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.condition, self.a, self.b)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Entry(Expr):
    """An entry of a table: that of the whole number not above the index or, where there is none, the nearest one."""

    table: str
    index: Expr

    @property
    def label(self) -> tuple[object, ...]:
        return (self.table,)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Function(Expr):
    """A function by its name, replaced by basic operations once the grid's type is known."""

    name: FunctionName
    arguments: tuple[Expr, ...]

    def __init__(self, name: FunctionName, *arguments: Expr) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "arguments", arguments)

    @property
    def label(self) -> tuple[object, ...]:
        return (self.name,)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return self.arguments


def as_expr(value: Number) -> Expr:
    """The expression of a number, or the expression itself."""
    if isinstance(value, Expr):
        return value
    if not is_number(value):
        raise NotInAStencil(f"A stencil combines values of fields, signals and numbers, got {shown(value)}.")
    try:
        return Const(float(value))
    except OverflowError:
        raise NotInAStencil("A number of a stencil is below 1e308, got a larger one; use other units.") from None


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a real number of Python or NumPy, but not for truth values."""
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A short text of any value for an error's sentence."""
    shape = getattr(value, "shape", ())
    if shape:
        return f"an array of shape {shape} (make it a field with grid.field, or a list of weights with .tolist())"
    text = "a value of the stencil" if isinstance(value, Expr) else repr(value)
    return text if len(text) <= 80 else f"a {type(value).__name__}"


def where(condition: Expr, a: Number, b: Number) -> Expr:
    """`a` in cells where `condition` holds, `b` in the others."""
    return Where(_condition(condition), as_expr(a), as_expr(b))


def minimum(a: Number, b: Number) -> Expr:
    """The smaller value; NaN where either is NaN."""
    return Binary("min", as_expr(a), as_expr(b))


def maximum(a: Number, b: Number) -> Expr:
    """The larger value; NaN where either is NaN."""
    return Binary("max", as_expr(a), as_expr(b))


def sqrt(a: Number) -> Expr:
    """The correctly rounded square root."""
    return Unary("sqrt", as_expr(a))


def exp(a: Number) -> Expr:
    """e to the power of `a`; the error is below one unit in the last place, as for `log`, `sin`, `cos` and `tanh`."""
    return Function("exp", as_expr(a))


def log(a: Number) -> Expr:
    """The natural logarithm; -inf for 0, NaN for negative numbers."""
    return Function("log", as_expr(a))


def sin(a: Number) -> Expr:
    """The sine of an angle in radians; NaN for angles beyond 1,608 in single precision, 1,647,099 in double."""
    return Function("sin", as_expr(a))


def cos(a: Number) -> Expr:
    """The cosine of an angle in radians; NaN for angles beyond 1,608 in single precision, 1,647,099 in double."""
    return Function("cos", as_expr(a))


def tanh(a: Number) -> Expr:
    """The hyperbolic tangent."""
    return Function("tanh", as_expr(a))


def equal(a: Number, b: Number) -> Expr:
    """The condition that two values are equal (`==` compares expressions, not values)."""
    return Binary("eq", as_expr(a), as_expr(b))


UFUNCS: dict[str, Callable[..., Expr]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "absolute": operator.abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "sqrt": sqrt,
    "exp": exp,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "power": operator.pow,
    "minimum": minimum,
    "maximum": maximum,
}
"""NumPy's functions that a stencil has, by name; operands are expressions when they are called."""

KNOWN = (
    "There are + - * / **, abs, peergrid.sqrt, exp, log, sin, cos, tanh, minimum, maximum, equal and where; compute "
    "anything else beforehand, into a coefficient field or a signal."
)


def ordered(results: Iterable[Expr], known: Iterable[Expr] = ()) -> tuple[Expr, ...]:
    """The expressions and all their parts in an order of evaluation: each once, operands first, from left to right.

    known: parts to leave out, with the parts that only they need.
    """
    found: dict[Expr, None] = {}
    seen = set(known)
    for result in results:
        waiting = [(result, False)]
        while waiting:
            node, complete = waiting.pop()
            if complete:
                found[node] = None
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting += [(operand, False) for operand in reversed(node.operands)]
    return tuple(found)


def reads(expr: Expr) -> Iterator[Read]:
    """Every read of a field in the expression, each once."""
    return (node for node in ordered((expr,)) if isinstance(node, Read))


def _rebuilt(parts: Iterable[tuple[type[Expr], tuple[object, ...], tuple[int, ...]]]) -> Expr:
    """The last of the parts, each made of those before it."""
    made: list[Expr] = []
    for kind, label, operands in parts:
        made.append(kind(*label, *(made[n] for n in operands)))
    return made[-1]


def _condition(value: Expr) -> Expr:
    if not isinstance(value, Expr) or not value.is_condition:
        raise NotInAStencil(
            "A condition is a comparison such as u[0, 0] > 0 (in place of == peergrid.equal), in parentheses beside & "
            f"and |, got {shown(value)}."
        )
    return value
