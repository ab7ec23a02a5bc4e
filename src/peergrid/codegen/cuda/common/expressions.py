"""From expressions to CUDA C++ text that evaluates to the same bits as NumPy: exactly as written, in one dtype.

The text is meant for `-fmad=false` and IEEE division and square root (NVRTC's default): then + - * / are the rounded
IEEE operations, and nothing is contracted. Literals are hexadecimal, so that no decimal rounding comes between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.skeletons import include
from peergrid.grid import Dtype
from peergrid.stencil import Problem
from peergrid.stencil.expr import Binary, Const, Entry, Expr, Now, Param, Read, Unary, Where, ordered
from peergrid.stencil.program import CellProgram, counts, has_exponents, is_operation

CTYPES: dict[Dtype, str] = {"float32": "float", "float64": "double"}

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&&",
    "or": "||",
}
CALLS = {
    "min": "pg_min",
    "max": "pg_max",
    "sqrt": "pg_sqrt",
    "abs": "pg_abs",
    "power_of_two": "pg_power_of_two",
    "exponent": "pg_exponent",
}
PREFIX = {"neg": "-", "not": "!"}

MOST_NESTED = 64  # operations within one another that are written as one expression, if not said otherwise


@dataclass(frozen=True)
class Style:
    """The text of values: the types of numbers and of conditions, how one of two values is chosen by a condition,
    how a condition becomes a number.
    """

    number: str = "R"
    condition: str = "bool"
    choice: str = "({} ? {} : {})"
    converted: str = "R({})"


ONE_CELL = Style()
PACKED = Style("auto", "auto", "pg_where({}, {}, {})", "pg_number({})")
"""Values of one cell; of neighbouring cells together (see `skeletons/packs.cuh`)."""


@dataclass(frozen=True)
class Result:
    """The text of one result of a cell: declarations that come first, once, and the text of its value."""

    declarations: tuple[str, ...]
    value: str


def cell_text(
    results: Sequence[Expr],
    read: Callable[[Read], str],
    param: Callable[[str], str],
    now: Callable[[str], str],
    entry: Callable[[str, str], str],
    dtype: Dtype,
    prefix: str = "t",
    names: Sequence[str] = (),
    nested: int = MOST_NESTED,
    style: Style = ONE_CELL,
) -> tuple[Result, ...]:
    """The text of results that are computed together, in order; what is used more than once is declared once.

    The callables give the text of a read, of a parameter (by key), of a signal (by name), of an entry of a table (by
    name and the text of the index). Every compound is in parentheses, so the text can stand anywhere; what the
    callables give must be able to, too.

    prefix: what the names of declared values begin with; names: what each result is called once it is there, if it
    has a name that later ones may use; nested: operations within one another that are written as one expression.
    """
    writer = _Writer(CellProgram(tuple(results)), read, param, now, entry, dtype, prefix, nested, style)
    return tuple(writer.result(n, names[n] if names else None) for n in range(len(results)))


@dataclass
class _Writer:
    """The text of a cell's values while it is written: each is there as an expression or, once declared, a name."""

    program: CellProgram
    read: Callable[[Read], str]
    param: Callable[[str], str]
    now: Callable[[str], str]
    entry: Callable[[str, str], str]
    dtype: Dtype
    prefix: str
    nested: int
    style: Style
    texts: dict[Expr, str] = field(default_factory=dict)
    depths: dict[Expr, int] = field(default_factory=dict)
    declared: int = 0

    def result(self, number: int, name: str | None) -> Result:
        """The next result; `name`: what its value is called from then on."""
        value, declarations = self.program.results[number], list[str]()
        for part in ordered((value,), self.texts):
            self.texts[part] = self._text(part)
            self.depths[part] = max((self.depths[operand] + 1 for operand in part.operands), default=0)
            if not (part is value and name) and self._worth_a_name(part):
                declarations.append(self._declared(part))
        text = self.texts[value]
        if name and is_operation(value):
            self.texts[value], self.depths[value] = name, 0
        return Result(tuple(declarations), text)

    def _worth_a_name(self, part: Expr) -> bool:
        return is_operation(part) and (self.program.uses[part] > 1 or self.depths[part] >= self.nested)

    def _declared(self, part: Expr) -> str:
        name, kind = f"{self.prefix}{self.declared}", self.style.condition if part.is_condition else self.style.number
        line = f"const {kind} {name} = {self.texts[part]};"
        self.declared += 1
        self.texts[part], self.depths[part] = name, 0
        return line

    def _text(self, node: Expr) -> str:
        match node:
            case Const(value):
                return literal(value, self.dtype)
            case Param(key):
                return self.param(key)
            case Now(signal):
                return self.now(signal)
            case Read():
                return self.read(node)
        parts = [
            self.style.converted.format(self.texts[o]) if counts(node, n) else self.texts[o]
            for n, o in enumerate(node.operands)
        ]
        match node:
            case Entry(table):
                return self.entry(table, parts[0])
            case Where():
                return self.style.choice.format(*parts)
            case Unary(op) | Binary(op) if op in CALLS:
                return f"{CALLS[op]}({listed(parts)})"
            case Unary(op):
                return f"({PREFIX[op]}{parts[0]})"
            case Binary(op):
                return f"({parts[0]} {INFIX[op]} {parts[1]})"
        raise TypeError(f"Unknown expression {node!r}.")


def helpers(problem: Problem) -> str:
    """The functions that the text of a problem's values calls."""
    exponents = ("exponents.cuh",) if has_exponents(problem) else ()
    entries = ("entries.cuh",) if problem.tables else ()
    return include("values.cuh", *exponents, *entries).removesuffix("\n")


def literal(value: float, dtype: Dtype) -> str:
    """A number rounded once to the dtype, as an exact hexadecimal literal."""
    with np.errstate(over="ignore"):
        rounded = float(np.dtype(dtype).type(value))
    if not np.isfinite(rounded):
        return _special(rounded, dtype)
    text = rounded.hex() + ("f" if dtype == "float32" else "")
    return f"({text})" if text.startswith("-") else text


def _special(value: float, dtype: Dtype) -> str:
    """Infinities and NaN, which have no literal, by their bits."""
    if dtype == "float32":
        return f"__int_as_float(0x{np.float32(value).view(np.uint32):08x})"
    return f"__longlong_as_double(0x{np.float64(value).view(np.uint64):016x}ll)"


def plus(name: str, offset: int) -> str:
    """`name + offset` as text."""
    return name if offset == 0 else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
