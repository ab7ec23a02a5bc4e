"""Carrying out a tape: the loop that issues a schedule's operations to the driver without the interpreter.

A tape is a table of 64-bit words, one row per call: kind, context, function, eleven arguments. One thread per host of
the schedule runs this loop; nothing in it holds the interpreter's lock.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types

from peergrid.runtime.cuda.native import add, call, load, store

CALL, POLL, MEET = 0, 1, 2
"""Kinds of rows: call a function; ask until it no longer answers 'not ready'; meet the other hosts."""

KIND, CONTEXT, FUNCTION, FIRST = 0, 1, 2, 3
COLUMNS = FIRST + 11

DONE, FAILED, TIMED_OUT, ABORTED = 0, 1, 2, 3
NOT_READY = 600
LOOKS = 2000  # looks before a waiting thread offers its core to others

_time: Any = types.ExternalFunction("time", types.int64(types.int64))
_sched_yield: Any = types.ExternalFunction("sched_yield", types.int32())


@njit(nogil=True, cache=True)
def _row(table: Any, n: int, patience: int, abort: int) -> tuple[int, int]:
    """One row; returns what became of it and the function's result."""
    kind, function = table[n, KIND], table[n, FUNCTION]
    words = (
        table[n, 3], table[n, 4], table[n, 5], table[n, 6], table[n, 7], table[n, 8],
        table[n, 9], table[n, 10], table[n, 11], table[n, 12], table[n, 13],
    )  # fmt: skip
    if kind == CALL:
        code = call(function, words)
        return (FAILED, code) if code else (DONE, 0)
    looks = 0
    started = _time(0)
    goal = 0
    if kind == MEET:
        goal = (add(words[0], 1) // words[1] + 1) * words[1]
    while True:
        if kind == MEET:
            if load(words[0]) >= goal:
                return DONE, 0
        else:
            code = call(function, words)
            if code != NOT_READY:
                return (FAILED, code) if code else (DONE, 0)
        looks += 1
        if looks > LOOKS:
            if load(abort):
                return ABORTED, 0
            if _time(0) - started > patience:
                return TIMED_OUT, 0
            _sched_yield()


@njit(nogil=True, cache=True)
def _rows(table: Any, context: int, set_context: int, patience: int, abort: int) -> tuple[int, int, int, int]:
    """All rows of a table; returns (state, code, row, context left current)."""
    for n in range(table.shape[0]):
        wanted = table[n, CONTEXT]
        if wanted and wanted != context:
            code = call(set_context, (wanted, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
            if code:
                return FAILED, code, n, context
            context = wanted
        state, code = _row(table, n, patience, abort)
        if state != DONE:
            return state, code, n, context
    return DONE, 0, -1, context


@njit(nogil=True, cache=True)
def replay(
    table: Any,
    patches: Any,
    marks: Any,
    every: int,
    turns: int,
    set_context: int,
    patience: int,
    abort: int,
) -> tuple[int, int, int, int]:
    """Carry out a tape `turns` times; returns (state, code, row, turn): row -1 - n is row n of the marks.

    patches: rows (address, value, increment per turn), words stored before each turn; marks: two tables, used in
    turn every `every` turns: events are recorded, those of the time before awaited, so that the host is never far
    ahead and a device that stands still is noticed; abort: address of a word that stops everybody.
    """
    context = 0
    for turn in range(turns):
        for n in range(patches.shape[0]):
            store(patches[n, 0], patches[n, 1] + turn * patches[n, 2])
        if load(abort):
            return ABORTED, 0, 0, turn
        state, code, row, context = _rows(table, context, set_context, patience, abort)
        if state == DONE and (turn + 1) % every == 0:
            state, code, row, context = _rows(marks[(turn + 1) // every % 2], context, set_context, patience, abort)
            row = -1 - row
        if state != DONE:
            store(abort, 1)
            return state, code, row, turn
    return DONE, 0, 0, turns


@njit(cache=True)
def invoke(function: int, words: Any) -> int:
    """Call one driver function with eleven words; returns its result code."""
    return int(call(function, words))
