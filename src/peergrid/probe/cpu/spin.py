"""Atomic words and spinning loops for threads that run without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS_PER_LINE = 16
get_item_pointer: Any = cgutils.get_item_pointer
YIELD_AFTER = 4000
GIVE_UP_AFTER = 50_000_000

WARM = 20
MONOTONIC = 1

_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_sched_yield = types.ExternalFunction("sched_yield", types.int32())


def lines(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Zeroed words, one per pair of cache lines: word i lives at `i * WORDS_PER_LINE`. Shape (count * 16,)."""
    return np.zeros(count * WORDS_PER_LINE, np.int64)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return get_item_pointer(context, builder, kind, view, [index])


def _load(typing_context: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """`array[index]` with acquire order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.intp), code


def _store(typing_context: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """`array[index] = value` with release order."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), code


def _add(typing_context: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """Add to `array[index]` in one step; returns the value before."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "acq_rel")

    return types.int64(array, types.intp, types.int64), code


def _pause(typing_context: Any) -> tuple[Any, Callable[..., Any]]:
    """Keep the compiler from removing or merging the loads of a spinning loop."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(kind, "", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), code


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
add: Any = intrinsic(_add)
pause: Any = intrinsic(_pause)


@njit(nogil=True)
def wait_for(words: Any, index: int, value: int) -> bool:
    """Spin until `words[index]` reaches `value`; False when it did not in a long time.

    After some thousand looks the thread offers its core to others, so that more threads than cores still end.
    """
    for look in range(GIVE_UP_AFTER):
        if load(words, index) >= value:
            return True
        pause()
        if look > YIELD_AFTER:
            _sched_yield()
    return False


@njit(nogil=True)
def now(clock: Any) -> float:
    """Seconds of the monotonic clock; `clock` is scratch, int64, shape (2,)."""
    _clock_gettime(MONOTONIC, clock.ctypes.data)
    return float(clock[0]) + 1e-9 * float(clock[1])


@njit(nogil=True)
def ping(words: Any, first: int, last: int, mine: int, other: int, leads: bool) -> bool:
    """One side of a flag game, rounds `first` to `last`: raise my word, wait for the other's; False when it hung."""
    for at in range(first, last + 1):
        if leads:
            store(words, mine, at)
        if not wait_for(words, other, at):
            return False
        if not leads:
            store(words, mine, at)
    return True


@njit(nogil=True)
def barrier(words: Any, first: int, last: int, threads: int) -> bool:
    """Barriers `first` to `last` of `threads` threads, over a counter and a generation word; False when it hung."""
    counter, generation = 0, WORDS_PER_LINE
    for at in range(first, last + 1):
        if add(words, counter, 1) == at * threads - 1:
            store(words, generation, at)
        elif not wait_for(words, generation, at):
            return False
    return True


@njit(nogil=True)
def timed_ping(words: Any, clock: Any, rounds: int, mine: int, other: int, leads: bool) -> float:
    """Seconds of `rounds` round trips after some that warm up; negative when it hung."""
    if not ping(words, 1, WARM, mine, other, leads):
        return -1.0
    begin = now(clock)
    fine = ping(words, WARM + 1, WARM + rounds, mine, other, leads)
    return now(clock) - begin if fine else -1.0


@njit(nogil=True)
def timed_barrier(words: Any, clock: Any, rounds: int, threads: int) -> float:
    """Seconds of `rounds` barriers after some that warm up; negative when it hung."""
    if not barrier(words, 1, WARM, threads):
        return -1.0
    begin = now(clock)
    fine = barrier(words, WARM + 1, WARM + rounds, threads)
    return now(clock) - begin if fine else -1.0


@njit(nogil=True)
def nothing(words: Any) -> None:
    """A kernel that does nothing: what is left is the cost of starting it."""
