"""The source of a row function: an update at every cell of a row, each operand behind a pointer of its own.

Fields, offsets, parameters and signals become numbered pointers, so updates of one form share one function: the two
ends of an absorber, every value of a parameter, every shape. Constants of the stencil are part of the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from peergrid.grid import Index
from peergrid.stencil import Problem, Update
from peergrid.stencil.expr import Binary, Const, Expr, Now, Param, Read, Unary, Where, ordered
from peergrid.stencil.program import counts

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
PREFIX = {"neg": "-{0}", "abs": "abs({0})", "sqrt": "sqrt({0})", "not": "not {0}"}
# NumPy's minimum and maximum: NaN wins, and of two equal zeros the second.
CHOICE = {"min": "{0} if ({0} < {1}) | ({0} != {0}) else {1}", "max": "{0} if ({0} > {1}) | ({0} != {0}) else {1}"}
# LLVM turns a loop that it knows to end before 16 cells into one masked vector. Rows end with such a loop, and short
# rows, as in absorbers, consist of nothing else.
REST = 16


@dataclass(frozen=True, slots=True)
class Write:
    """The new value of a field at the cell; in place, its old value as well."""

    field: str


Operand = Write | Read | Param | Now


@dataclass(frozen=True)
class RowCode:
    """A row function and what its pointers stand for.

    users[i]: the fields whose new values need operand `i`.
    """

    text: str
    operands: tuple[Operand, ...]
    users: tuple[frozenset[str], ...]


@dataclass
class _Body:
    """A row function while it is written: values are numbered, equal ones once."""

    problem: Problem
    in_place: frozenset[str]
    operands: list[Operand] = field(default_factory=list)
    users: list[set[str]] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    loop: list[str] = field(default_factory=list)

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
        here = isinstance(expr, Read) and expr.field in self.in_place
        number = self.pointer(Write(expr.field) if here and isinstance(expr, Read) else expr, user)
        if isinstance(expr, Read) and self._varies(expr):
            return self._let(f"p{number}[x]")
        key = ("point", number)
        if key not in self.known:
            self.known[key] = f"c{len(self.before)}"
            self.before.append(f"{self.known[key]} = p{number}[0]")
        return self.known[key]

    def _varies(self, read: Read) -> bool:
        """Whether the values differ along a row."""
        return self.problem.grid.ndim - 1 in self.problem.fields[read.field].axes

    def _let(self, form: str, *parts: str) -> str:
        key = (form, *parts)
        if key not in self.known:
            self.known[key] = f"v{len(self.loop)}"
            self.loop.append(f"{self.known[key]} = {form.format(*parts)}")
        return self.known[key]


def row_code(problem: Problem, update: Update, in_place: frozenset[str] = frozenset()) -> RowCode:
    """The row function of an update; fields `in_place` are read and written behind one pointer."""
    body = _Body(problem, in_place)
    for assignment in update.assignments:
        body.pointer(Write(assignment.target), assignment.target)
    values = [body.value(a.value, a.target) for a in update.assignments]
    body.loop += [f"p{number}[x] = {value}" for number, value in enumerate(values)]
    text = _module(problem, len(body.operands), body.constants, body.before, body.loop)
    return RowCode(text, tuple(body.operands), tuple(frozenset(users) for users in body.users))


def copy_code(problem: Problem, name: str) -> RowCode:
    """The row function that carries a field's old value over."""
    here: Index = (0,) * problem.grid.ndim
    body = _Body(problem, frozenset())
    pointers = (Write(name), Read(name, here))
    text = _module(problem, 2, body.constants, body.before, ["p0[x] = p1[x]"])
    return RowCode(text, pointers, (frozenset((name,)), frozenset((name,))))


def past_cache_code(problem: Problem, name: str) -> RowCode:
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
        "        cells(nx, p[0] + y * s[0], p[1] + y * s[1])",
        "",
    ]
    return replace(copy_code(problem, name), text="\n".join(lines))


def _module(
    problem: Problem, pointers: int, constants: Iterable[str], before: Iterable[str], loop: Sequence[str]
) -> str:
    """The source of a module with `cells`, one row, and `rows`, the function that the driver calls."""
    dtype = problem.grid.dtype
    lines = [
        "from math import sqrt",
        "",
        f"from numpy import {dtype} as number",
        "",
        f"from peergrid.codegen.cpu.jit import {dtype}_at as at",
        "",
        *constants,
        "",
        "",
        f"def cells(n, {', '.join(f'p{i}' for i in range(pointers))}):",
        *(f"    {line}" for line in before),
        f"    for x in range(n & -{REST}):",
        *(f"        {line}" for line in loop),
        f"    for x in range(n & -{REST}, n):",
        *(f"        {line}" for line in loop),
        "",
        "",
        "def rows(p, s, ny, nx):",
        *_calls(pointers, many=problem.grid.ndim > 2),
        "",
    ]
    return "\n".join(lines)


def _calls(pointers: int, many: bool) -> list[str]:
    """The body of `rows`: many lines one after another, or the only one."""
    if not many:
        return [f"    cells(nx, {', '.join(f'at(p[{i}])' for i in range(pointers))})"]
    arguments = ", ".join(f"at(p[{i}] + y * s[{i}])" for i in range(pointers))
    return ["    for y in range(ny):", f"        cells(nx, {arguments})"]
