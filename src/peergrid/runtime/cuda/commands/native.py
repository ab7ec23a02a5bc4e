"""Numba intrinsics on plain addresses: call a C function, read and write words that other threads see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from peergrid.runtime.cuda.commands.buffer import ARGUMENTS

_WORD = ir.IntType(64)
TUPLE: Any = cast(Any, types).UniTuple(types.int64, ARGUMENTS)
Code = tuple[Any, Callable[..., Any]]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function compiled without the interpreter's lock; kept beside the sources where these can be written to."""
    try:
        return cast(Function, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # an installation that is read-only, and no folder of the user's
        return cast(Function, njit(nogil=True)(function))


def _call(typing_context: Any, address: Any, words: Any) -> Code:
    """Call the function at an address with a tuple of 11 words; returns its 32-bit result."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [_WORD] * ARGUMENTS)
        function = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(function, [builder.extract_value(args[1], n) for n in range(ARGUMENTS)])

    return types.int32(types.int64, TUPLE), code


def _load(typing_context: Any, address: Any) -> Code:
    """The word at an address, with acquire order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), code


def _store(typing_context: Any, address: Any, value: Any) -> Code:
    """Set the word at an address, with release order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], _WORD.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


def _add(typing_context: Any, address: Any, value: Any) -> Code:
    """Add to the word at an address in one step; returns the value before."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], _WORD.as_pointer()), args[1], "acq_rel")

    return types.int64(types.int64, types.int64), code


call: Any = intrinsic(_call)
load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
add: Any = intrinsic(_add)
