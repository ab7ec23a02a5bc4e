"""Exponents of numbers in code that Numba compiles: integer operations on their bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from peergrid.stencil.pairs import FORMATS

BITS = {types.float32: 32, types.float64: 64}


def _power_of_two(typing: Any, value: Any) -> Any:
    """2 to the nearest whole number: the sum has it in its last digits, and these become the exponent."""
    kind, word = FORMATS[value.name], ir.IntType(BITS[value])

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        raised = builder.fadd(arguments[0], ir.Constant(arguments[0].type, kind.to_whole + kind.largest))
        moved = builder.shl(builder.bitcast(raised, word), ir.Constant(word, kind.fraction))
        return builder.bitcast(moved, arguments[0].type)

    return value(value), generate


def _exponent(typing: Any, value: Any) -> Any:
    """The exponent of a normal number, from its bits."""
    kind, word = FORMATS[value.name], ir.IntType(BITS[value])

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.and_(builder.bitcast(arguments[0], word), ir.Constant(word, 2 ** (BITS[value] - 1) - 1))
        moved = builder.lshr(bits, ir.Constant(word, kind.fraction))
        return builder.sitofp(builder.sub(moved, ir.Constant(word, kind.largest)), arguments[0].type)

    return value(value), generate


power_of_two: Any = intrinsic(_power_of_two)
exponent: Any = intrinsic(_exponent)
