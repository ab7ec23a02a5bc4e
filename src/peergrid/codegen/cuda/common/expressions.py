"""From an expression to CUDA C++ text that evaluates to the same bits as NumPy: exactly as written, in one dtype.

The text is meant for `-fmad=false` and IEEE division and square root (NVRTC's default): then + - * / are the rounded
IEEE operations, and nothing is contracted. Literals are hexadecimal, so that no decimal rounding comes between.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peergrid.grid import Dtype
from peergrid.stencil.expr import Binary, Const, Expr, Now, Param, Read, Unary, Where

CTYPES: dict[Dtype, str] = {"float32": "float", "float64": "double"}

PRELUDE = """\
// minimum and maximum as NumPy has them: NaN where either is NaN, the second where both are equal.
template <typename R> __device__ __forceinline__ R pg_min(R a, R b) { return a < b || a != a ? a : b; }
template <typename R> __device__ __forceinline__ R pg_max(R a, R b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float pg_sqrt(float a) { return __fsqrt_rn(a); }
__device__ __forceinline__ double pg_sqrt(double a) { return __dsqrt_rn(a); }
__device__ __forceinline__ float pg_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double pg_abs(double a) { return fabs(a); }
"""
"""What emitted text calls; once per translation unit, before it."""

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
CALLS = {"min": "pg_min", "max": "pg_max", "sqrt": "pg_sqrt", "abs": "pg_abs"}
PREFIX = {"neg": "-", "not": "!"}


def emit(
    expr: Expr,
    read: Callable[[Read], str],
    param: Callable[[str], str],
    now: Callable[[str], str],
    dtype: Dtype,
) -> str:
    """The text of an expression; the callables give the text of a read, of a parameter (by key), of a signal (by name).

    Every compound is in parentheses, so the text can stand anywhere; what the callables give must be able to, too.
    """

    def text(node: Expr) -> str:
        match node:
            case Const(value):
                return literal(value, dtype)
            case Param(key):
                return param(key)
            case Now(signal):
                return now(signal)
            case Read():
                return read(node)
            case Unary(op, a):
                return f"{CALLS[op]}({text(a)})" if op in CALLS else f"({PREFIX[op]}{text(a)})"
            case Binary(op, a, b) if op in CALLS:
                return f"{CALLS[op]}({text(a)}, {text(b)})"
            case Binary(op, a, b):
                return f"({text(a)} {INFIX[op]} {text(b)})"
            case Where(condition, a, b):
                return f"({text(condition)} ? {text(a)} : {text(b)})"
        raise TypeError(f"Unknown expression {node!r}.")

    return text(expr)


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
