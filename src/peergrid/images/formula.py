"""The formula of a pixel as text, read without executing anything."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any
from warnings import catch_warnings

from peergrid.errors import UsageError
from peergrid.io.rule import shown
from peergrid.stencil import Expr, maximum, minimum, sqrt

Formula = Callable[[Any], Expr]
"""A function from the value of a pixel to its new value, of the operations of stencils."""

LONGEST = 1000  # characters
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "sqrt": sqrt, "min": minimum, "max": maximum}
EXPECTED = "numbers, x, + - * /, parentheses, abs(), sqrt(), min(,) and max(,)"


def parse(text: str) -> Formula:
    """The formula of a text such as "x / 3" or "max(x - 20, 0) * 1.2". Raises UsageError for any other text."""
    if len(text) > LONGEST:
        raise UsageError(f"A formula has at most {LONGEST} characters, got {len(text):,}.")
    try:
        with catch_warnings(action="ignore"):  # about texts such as "3x", which are refused
            tree = ast.parse(text.strip(), mode="eval").body
        _checked(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"A formula is made of {EXPECTED}, got '{shown(text, 200)}'.") from None
    return lambda x: _value(tree, x)


def _checked(node: ast.expr) -> None:
    """Raise ValueError for a part that a formula does not have."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and abs(value) < 1e30:
            return
        case ast.Name(id="x"):
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            _checked(left)
            _checked(right)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            _checked(operand)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            if len(args) != (2 if name in ("min", "max") else 1):
                raise ValueError(name)
            for each in args:
                _checked(each)
        case _:
            raise ValueError(type(node).__name__)


def _value(node: ast.expr, x: Any) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name():
            return x
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, x), _value(right, x))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_value(operand, x))
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_value(each, x) for each in args))
    raise AssertionError(f"{type(node).__name__} was checked")
