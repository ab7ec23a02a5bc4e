"""The source of a row function: an update at every cell of a row, each operand behind a pointer of its own.

Fields, offsets, parameters, signals and tables become numbered pointers, so updates of one form share one function:
the two ends of an absorber, every value of a parameter, every shape. Constants of the stencil and the lengths of tables
are part of the form.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from peergrid.grid import Index
from peergrid.stencil import Problem, Update
from peergrid.stencil.expr import Binary, Const, Entry, Expr, Now, Param, Read, Unary, Where, ordered
from peergrid.stencil.program import counts

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
PREFIX = {
    "neg": "-{0}", "abs": "abs({0})", "sqrt": "sqrt({0})", "not": "not {0}", "power_of_two": "power_of_two({0})",
    "exponent": "exponent({0})",
}  # fmt: skip
EXPONENTS = ("power_of_two(", "exponent(")
# NumPy's minimum and maximum: NaN wins, and of two equal zeros the second.
CHOICE = {"min": "{0} if ({0} < {1}) | ({0} != {0}) else {1}", "max": "{0} if ({0} > {1}) | ({0} != {0}) else {1}"}
# LLVM turns a loop that it knows to end before 16 cells into one masked vector. Rows end with such a loop, and short
# rows, as in absorbers, consist of nothing else.
REST = 16


@dataclass(frozen=True, slots=True)
class Write:
    """The new value of a field at the cell, or `ahead` rows from it; in place, an old value as well."""

    field: str
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample of a signal with slopes at the cell, or `ahead` rows from it."""

    signal: str
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Entries:
    """The first entry of a table; the others follow."""

    table: str


@dataclass(frozen=True, slots=True)
class Later:
    """The value of a field so many planes further, of which the cache line alone is asked for."""

    field: str
    planes: int


Operand = Write | Read | Param | Now | Sample | Entries | Later


@dataclass(frozen=True)
class RowCode:
    """A row function and what its pointers stand for.

    users[i]: the fields whose new values need operand `i`.
    """

    text: str
    operands: tuple[Operand, ...]
    users: tuple[frozenset[str], ...]


@dataclass
class RowWriter(ABC):
    """A row function while it is written: values are numbered, equal ones once."""

    problem: Problem
    in_place: Mapping[str, str]
    ahead: int = 0
    operands: list[Operand] = field(default_factory=list)
    users: list[set[str]] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)

    def pointer(self, operand: Operand, user: str) -> int:
        """The number of an operand, which is added where it is new."""
        if operand not in self.operands:
            self.operands.append(operand)
            self.users.append(set())
        number = self.operands.index(operand)
        self.users[number].add(user)
        return number

    def value(self, expr: Expr, user: str) -> str:
        """The name of an expression's value; the code of it and of its parts is written first."""
        names: dict[Expr, str] = {}
        for part in ordered((expr,)):
            names[part] = self._new(part, user, names)
        return names[expr]

    @abstractmethod
    def _new(self, expr: Expr, user: str, names: Mapping[Expr, str]) -> str:
        """The name of an expression's value, written now; names: of its parts."""


@dataclass
class _Body(RowWriter):
    """A row function of Python."""

    constants: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    loop: list[str] = field(default_factory=list)

    def _new(self, expr: Expr, user: str, names: Mapping[Expr, str]) -> str:
        parts = [self._operand(expr, place, names) for place in range(len(expr.operands))]
        match expr:
            case Const(value):
                return self._constant(value)
            case Read() | Param() | Now():
                return self._load(expr, user)
            case Unary(op):
                return self._let(PREFIX[op], *parts)
            case Binary(op):
                return self._let(CHOICE[op] if op in CHOICE else f"{{0}} {INFIX[op]} {{1}}", *parts)
            case Where():
                return self._let("{1} if {0} else {2}", *parts)
            case Entry(table):
                return self._entry(table, parts[0], user)
        raise TypeError(f"Unknown expression {expr!r}.")

    def _operand(self, expr: Expr, place: int, names: Mapping[Expr, str]) -> str:
        """The name of an operand; a condition counts as 1 or 0 where a number is asked for."""
        name = names[expr.operands[place]]
        return self._let("number({0})", name) if counts(expr, place) else name

    def _constant(self, value: float) -> str:
        text = repr(value) if value - value == 0 else f'float("{value!r}")'
        key = ("const", text)
        if key not in self.known:
            self.known[key] = f"K{len(self.constants)}"
            self.constants.append(f"{self.known[key]} = number({text})")
        return self.known[key]

    def _load(self, expr: Read | Param | Now, user: str) -> str:
        if isinstance(expr, Read) and self._varies(expr):
            return self._let(f"p{self.pointer(self._operand_of(expr), user)}[x]")
        number = self.pointer(self._operand_of(expr), user)
        along = slopes(self.problem, expr)[-1]
        if along:
            return self._let(f"p{number}[{along} * x]")
        key = ("point", number)
        if key not in self.known:
            self.known[key] = f"c{len(self.before)}"
            self.before.append(f"{self.known[key]} = p{number}[0]")
        return self.known[key]

    def _entry(self, table: str, index: str, user: str) -> str:
        """An entry of a table, at the nearest place that there is."""
        number, last = self.pointer(Entries(table), user), len(self.problem.tables[table]) - 1
        above = self._let("{0} if {0} > {1} else {1}", index, self._constant(0.0))
        near = self._let("{0} if {0} < {1} else {1}", above, self._constant(float(last)))
        return self._let(f"p{number}[int({{0}})]", near)

    def _operand_of(self, expr: Read | Param | Now) -> Operand:
        """The operand that is loaded for an expression in the row that is being written."""
        if isinstance(expr, Now) and any(slopes(self.problem, expr)):
            return Sample(expr.signal, self.ahead)
        if not isinstance(expr, Read):
            return expr
        if expr.field in self.in_place:
            return Write(self.in_place[expr.field], self.ahead)
        return Read(expr.field, (expr.offset[0] + self.ahead, *expr.offset[1:]))

    def _varies(self, read: Read) -> bool:
        """True where the values differ along a row."""
        return self.problem.grid.ndim - 1 in self.problem.fields[read.field].axes

    def _let(self, form: str, *parts: str) -> str:
        key = (form, *parts)
        if key not in self.known:
            self.known[key] = f"v{len(self.loop)}"
            self.loop.append(f"{self.known[key]} = {form.format(*parts)}")
        return self.known[key]


def slopes(problem: Problem, expr: Expr) -> Index:
    """The slopes of a signal's sample; zeros where all cells have the same, and for any other expression."""
    found = problem.signals[expr.signal].slopes if isinstance(expr, Now) else ()
    return found or (0,) * problem.grid.ndim


def row_code(
    problem: Problem, update: Update, in_place: Mapping[str, str] = MappingProxyType({}), rows: int = 1
) -> RowCode:
    """The row function of an update.

    in_place: fields whose old values lie where new values are written, each with the field that is written there; both
    are behind one pointer; rows: so many rows (planes in 3D) are computed at once; what several of them read is loaded
    once.
    """
    body = _Body(problem, in_place)
    for ahead in range(rows):
        for assignment in update.assignments:
            body.pointer(Write(assignment.target, ahead), assignment.target)
    for body.ahead in range(rows):
        values = [body.value(a.value, a.target) for a in update.assignments]
        body.loop += [f"p{body.ahead * len(values) + number}[x] = {value}" for number, value in enumerate(values)]
    return RowCode(_module(problem, body), tuple(body.operands), tuple(frozenset(users) for users in body.users))


def copy_code(problem: Problem, name: str) -> RowCode:
    """The row function that carries a field's old value over."""
    body = _Body(problem, {})
    body.operands = _carried(problem, name, 1)
    body.loop = ["p0[x] = p1[x]"]
    return _copying(name, body.operands, _module(problem, body))


def _carried(problem: Problem, name: str, rows: int) -> list[Operand]:
    rest: Index = (0,) * (problem.grid.ndim - 1)
    return [operand for row in range(rows) for operand in (Write(name, row), Read(name, (row, *rest)))]


def _copying(name: str, operands: list[Operand], text: str) -> RowCode:
    return RowCode(text, tuple(operands), (frozenset((name,)),) * len(operands))


def past_cache_code(problem: Problem, name: str, rows: int = 1) -> RowCode:
    """As `copy_code`, past the caches: lines that are written whole need not be fetched, and nobody reads them soon."""
    size = problem.itemsize
    lines = [
        f"from peergrid.codegen.cpu.jit import {problem.grid.dtype}_at as at, store_line",
        "",
        "",
        "def cells(n, to, source):",
        "    target, values = at(to), at(source)",
        f"    head = min(n, -to % 64 // {size})",
        f"    tail = n - (n - head) % {64 // size}",
        "    for x in range(head):",
        "        target[x] = values[x]",
        f"    for x in range(head, tail, {64 // size}):",
        f"        store_line(to + {size} * x, source + {size} * x)",
        "    for x in range(tail, n):",
        "        target[x] = values[x]",
        "",
        "",
        "def rows(p, s, ny, nx):",
        "    for y in range(ny):",
        *(f"        cells(nx, p[{i}] + y * s[{i}], p[{i + 1}] + y * s[{i + 1}])" for i in range(0, 2 * rows, 2)),
        "",
    ]
    return _copying(name, _carried(problem, name, rows), "\n".join(lines))


def _module(problem: Problem, body: _Body) -> str:
    """The source of a module with `cells`, one row, and `rows`, the function that the driver calls."""
    dtype, many = problem.grid.dtype, problem.grid.ndim > 2
    names = [f"p{i}" for i in range(len(body.operands))]
    exponents = any(name in line for line in body.loop for name in EXPONENTS)
    lines = [
        "from math import sqrt",
        "",
        f"from numpy import {dtype} as number",
        "",
        f"from peergrid.codegen.cpu.jit import {dtype}_at as at{', widest_vectors' if many else ''}",
        *(["from peergrid.codegen.cpu.exponents import exponent, power_of_two"] if exponents else []),
        "",
        *body.constants,
        "",
        "",
        f"def cells(n, {', '.join(names)}):",
        *(["    widest_vectors()"] if many else []),
        *(f"    {line}" for line in body.before),
        f"    for x in range(n & -{REST}):",
        *(f"        {line}" for line in body.loop),
        f"    for x in range(n & -{REST}, n):",
        *(f"        {_renamed(line)}" for line in body.loop),
        "",
        "",
        "def rows(p, s, ny, nx):",
        *_calls(problem, body, many),
        "",
    ]
    return "\n".join(lines)


def _renamed(line: str) -> str:
    """A line as it stands in the second loop: Numba takes a time that grows quadratically for names with two values."""
    return re.sub(r"\bv(\d)", r"w\1", line)


def _calls(problem: Problem, body: _Body, many: bool) -> list[str]:
    """The body of `rows`: many lines one after another, or the only one."""
    count = len(body.operands)
    if not many:
        return [f"    cells(nx, {', '.join(f'at(p[{i}])' for i in range(count))})"]
    return [
        *(f"    a{i} = p[{i}]" for i in range(count)),
        "    for _ in range(ny):",
        f"        cells(nx, {', '.join(f'at(a{i})' for i in range(count))})",
        *(f"        a{i} += s[{i}]" for i in range(count)),
    ]
