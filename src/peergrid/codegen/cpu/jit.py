"""Functions that Numba compiles, without the GIL: the driver, norms and reductions, the same for all problems.

Modules are named after their content and written to a folder whole or not at all; Numba keeps the machine code beside
them. Where the folder cannot be written, the code is compiled for this process alone. A process compiles a text once.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types as python_types
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import intrinsic

from peergrid.codegen.cpu.machine_code import MachineCode, replace_file
from peergrid.errors import UsageError

TABLE = types.Array(types.int64, 2, "C")
STREAM = types.void(
    types.Array(types.int64, 1, "C"), TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, types.int64, types.int64, types.int64
)  # fmt: skip


class NoAlias(CompilerBase):
    """The usual compiler with the promise that no two arguments overlap: long lists of pointers vectorise without
    checks.
    """

    def define_pipelines(self) -> list[Any]:
        passes: Any = DefaultPassBuilder
        self.state.flags.noalias = True
        self.state.flags.no_cpython_wrapper = True
        self.state.flags.no_cfunc_wrapper = True
        return [passes.define_nopython_pipeline(self.state)]


def _address_of(typing: Any, array: Any) -> Any:
    """The address of an array's first element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


def _invoke(typing: Any, function: Any, pointers: Any, strides: Any, ny: Any, nx: Any) -> Any:
    """Call a row function by its address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), (word.as_pointer(), word.as_pointer(), word, word))
        callee = builder.inttoptr(arguments[0], kind.as_pointer())
        tables = [builder.inttoptr(a, word.as_pointer()) for a in arguments[1:3]]
        builder.call(callee, [*tables, arguments[3], arguments[4]])
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 5), generate


def _fence(typing: Any) -> Any:
    """Stores past the caches are seen before anything that follows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), generate


fence: Any = intrinsic(_fence)
fused: Any = intrinsic(_fused)
address_of: Any = intrinsic(_address_of)
invoke: Any = intrinsic(_invoke)


@cache
def compile_driver(cache: Path | None) -> Callable[..., None]:
    """The compiled `driver.stream`."""
    text = _text_of("driver.py")

    def build(module: Any, keep: bool) -> Callable[..., None]:
        module.place = njit(nogil=True, error_model="numpy")(module.place)
        module.advance = njit(nogil=True, error_model="numpy", pipeline_class=NoAlias)(module.advance)
        compiled: Callable[..., None] = njit(STREAM, nogil=True, error_model="numpy", cache=keep)(module.stream)
        return compiled

    built: Callable[..., None] = _built("driver", text, cache, build)
    return built


@cache
def compile_norm(dtype: str, cache: Path | None) -> Callable[..., None]:
    """The compiled `norm.sums` for fields of a type."""
    values = types.Array(getattr(types, dtype), 2, "C")

    def build(module: Any, keep: bool) -> Callable[..., None]:
        module.add_rows = njit(nogil=True, error_model="numpy")(module.add_rows)
        signature = types.void(values, values, types.int64, types.Array(types.float64, 1, "C"))
        compiled: Callable[..., None] = njit(signature, nogil=True, error_model="numpy", cache=keep)(module.sums)
        return compiled

    built: Callable[..., None] = _built("norm", _text_of("norm.py"), cache, build)
    return built


@cache
def compile_reduce(dtype: str, cache: Path | None) -> Callable[..., None]:
    """The compiled `reduce.leaves` for values of a type."""
    double = types.float64
    results = types.Array(double, 1, "C")

    def build(module: Any, keep: bool) -> Callable[..., None]:
        module.combine = njit(nogil=True, error_model="numpy", inline="always")(module.combine)
        module.gather = njit(nogil=True, error_model="numpy", pipeline_class=NoAlias)(module.gather)
        signature = types.void(types.int64, double, types.Array(getattr(types, dtype), 2, "A"), types.int64, results)
        compiled: Callable[..., None] = njit(signature, nogil=True, error_model="numpy", cache=keep)(module.leaves)
        return compiled

    built: Callable[..., None] = _built("reduce", _text_of("reduce.py"), cache, build)
    return built


def _text_of(name: str) -> str:
    """A module beside this one as text, from an archive, too."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _built(prefix: str, text: str, cache: Path | None, build: Callable[[Any, bool], Any]) -> Any:
    """The result of `build` for the module, from the folder where it can be had. Raises UsageError without compiler."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise UsageError("NUMBA_DISABLE_JIT turns off the compiler that kernels on processors need: unset it.")
    name = f"peergrid_{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    if cache is not None:
        try:
            kept = MachineCode(cache, name)
            kept.check()
            made = build(_module(name, text, _stored(name, text, cache)), True)
            kept.note()
            return made
        except Exception:
            pass  # a read-only, full or damaged folder fails in many ways; a fault of the text itself shows below
    return build(_module(name, text), False)


def _stored(name: str, text: str, cache: Path) -> Path:
    """The module's file, written under another name first. Its time is fixed: Numba takes a new time for a new text."""
    path = cache / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        replace_file(path, text.encode())
        os.utime(path, (0, 0))
    return path


def _module(name: str, text: str, path: Path | None = None) -> Any:
    """A module of this very text, whatever lies in the folder; path: where Numba keeps machine code beside."""
    module = python_types.ModuleType(name)
    if path is not None:
        module.__file__ = str(path)
        sys.modules[name] = module  # where Numba looks for it
    exec(compile(text, name if path is None else str(path), "exec"), module.__dict__)
    return module
