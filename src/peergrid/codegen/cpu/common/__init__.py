"""Functions that are the same for all problems, as texts of LLVM's intermediate representation.

driver  the loop over rows that carries a program's tables out
norm    the sums of squared changes that the norm of every step begins with
reduce  the results of leaves of a reduction

Compiled functions take addresses and numbers, and run without the interpreter's lock.
"""

from __future__ import annotations

import re
from ctypes import CFUNCTYPE, c_double, c_int64
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from peergrid.codegen.cpu.lanes import NUMBER, SIZE, SUFFIX
from peergrid.codegen.cpu.native import compile_function

WIDE = {
    "float32": "  %wide = fpext float %value to double\n  ret double %wide\n",
    "float64": "  ret double %value\n",
}


@cache
def driver(folder: Path | None) -> Any:
    """`stream` of driver.ll; folder: for machine code, where one can be had."""
    return _compiled("stream", _text("driver"), folder, *[c_int64] * 14)


@cache
def norm(dtype: str, folder: Path | None) -> Any:
    """`sums` of norm.ll for fields of a type."""
    return _compiled("sums", _typed("norm", dtype), folder, *[c_int64] * 9)


@cache
def reduce(dtype: str, folder: Path | None) -> Any:
    """`leaves` of reduce.ll for values of a type."""
    return _compiled("leaves", _typed("reduce", dtype), folder, c_int64, c_double, *[c_int64] * 7)


def _compiled(name: str, text: str, folder: Path | None, *arguments: type[c_int64] | type[c_double]) -> Any:
    code = compile_function(text, name, folder, optimise=True)
    function: Any = CFUNCTYPE(None, *arguments)(code.address)
    function.code = code  # keeps it
    return function


def _typed(name: str, dtype: str) -> str:
    wide = f"\ndefine internal double @wide(REAL %value) alwaysinline {{\n{WIDE[dtype]}}}\n"
    words = {"REAL": NUMBER[dtype], "SUFFIX": SUFFIX[dtype], "BLOCKBYTES": str(2 * SIZE[dtype])}
    return re.sub("|".join(words), lambda word: words[word[0]], _text(name) + wide)


def _text(name: str) -> str:
    """A file beside this module, from an archive, too."""
    return resources.files(__package__).joinpath(f"{name}.ll").read_text(encoding="utf-8")
