"""The replay of a command buffer: a loop that issues a schedule's operations without the interpreter.

A command buffer is a table of 64-bit words, one row per call: kind, context, function, eleven arguments. Each is
replayed by a thread of its own; nothing in the loop holds the interpreter's lock.
"""

from __future__ import annotations

from typing import Any

from numba import types

from peergrid.runtime.cuda.commands.buffer import BARRIER, CALL, CONTEXT, FUNCTION, KIND, POLL
from peergrid.runtime.cuda.commands.native import add, call, compiled, load, store

DONE, FAILED, TIMED_OUT, ABORTED = 0, 1, 2, 3
NOT_READY = 600
LOOKS = 2000  # looks before a waiting thread offers its core to others
BREATH = 500  # loads, about a microsecond, between two questions to the driver: they hold up threads that issue
MONOTONIC = 1  # CLOCK_MONOTONIC
SECOND = 1_000_000_000  # nanoseconds

_clock: Any = types.ExternalFunction("clock_gettime", types.int32(types.int64, types.int64))
_sched_yield: Any = types.ExternalFunction("sched_yield", types.int32())
_usleep: Any = types.ExternalFunction("usleep", types.int32(types.int64))


@compiled
def _now(spent: int) -> int:
    """Nanoseconds of a clock that only grows; `spent`: address of three words, of which it uses the last two."""
    _clock(MONOTONIC, spent + 8)
    return int(load(spent + 8) * SECOND + load(spent + 16))


@compiled
def _look(kind: int, function: int, words: Any, goal: int) -> int:
    """The state of what a row waits for: there (0), not yet (`NOT_READY`), or never (an error)."""
    if kind == POLL:
        return int(call(function, words))
    return 0 if load(words[0]) >= goal else NOT_READY


@compiled
def _wait(kind: int, function: int, words: Any, goal: int, timeout: int, abort: int, spent: int) -> tuple[int, int]:
    """Look again and again; the time that takes is taken off the time spent, with that of a first question in vain."""
    asked = _now(spent) if kind == POLL else 0
    code = _look(kind, function, words, goal)
    if code != NOT_READY:
        return (FAILED, code) if code else (DONE, 0)
    began, looks, state = asked or _now(spent), 0, DONE
    sleep = words[1] if kind == POLL else 0
    while code == NOT_READY:
        if sleep:
            _usleep(sleep)
        elif kind == POLL:
            for _ in range(BREATH):
                load(abort)
        code = _look(kind, function, words, goal)
        looks += 1
        if (sleep or looks > LOOKS) and code == NOT_READY:
            if load(abort):
                state, code = ABORTED, 0
            elif _now(spent) - began > timeout * SECOND:
                state, code = TIMED_OUT, 0
            else:
                _sched_yield()
    store(spent, load(spent) - (_now(spent) - began))
    return (FAILED, code) if code else (state, 0)


@compiled
def _row(table: Any, n: int, timeout: int, abort: int, spent: int) -> tuple[int, int]:
    """One row; returns what became of it and the function's result."""
    kind, function = table[n, KIND], table[n, FUNCTION]
    words = (
        table[n, 3], table[n, 4], table[n, 5], table[n, 6], table[n, 7], table[n, 8],
        table[n, 9], table[n, 10], table[n, 11], table[n, 12], table[n, 13],
    )  # fmt: skip
    if kind == CALL:
        code = call(function, words)
        return (FAILED, code) if code else (DONE, 0)
    goal = 0
    if kind == BARRIER:
        goal = (add(words[0], 1) // words[1] + 1) * words[1]
    return _wait(kind, function, words, goal, timeout, abort, spent)


@compiled
def _rows(
    table: Any, context: int, set_context: int, timeout: int, abort: int, spent: int
) -> tuple[int, int, int, int]:
    """All rows of a table; returns (state, code, row, context left current)."""
    for n in range(table.shape[0]):
        wanted = table[n, CONTEXT]
        if wanted and wanted != context:
            code = call(set_context, (wanted, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
            if code:
                return FAILED, code, n, context
            context = wanted
        state, code = _row(table, n, timeout, abort, spent)
        if state != DONE:
            return state, code, n, context
    return DONE, 0, -1, context


@compiled
def replay(
    table: Any,
    relocations: Any,
    marks: Any,
    every: int,
    iterations: int,
    set_context: int,
    timeout: int,
    abort: int,
    spent: int,
) -> tuple[int, int, int, int]:
    """Carry out a command buffer `iterations` times; returns (state, code, row, iteration).

    Row -1 - n is row n of the marks. relocations: rows (address, value, increment per iteration), words stored before
    each iteration; marks: two tables, used alternately every `every` iterations: events are recorded, those of the
    time before awaited, so that the host is never far ahead and a device that stands still is noticed; abort: address
    of a word that stops everybody; spent: address of three words, the first of which grows by the nanoseconds that this
    took without waiting.
    """
    context, began = 0, _now(spent)
    state, code, row, iteration = DONE, 0, 0, 0
    while iteration < iterations and state == DONE:
        for n in range(relocations.shape[0]):
            store(relocations[n, 0], relocations[n, 1] + iteration * relocations[n, 2])
        if load(abort):
            state, code, row = ABORTED, 0, 0
            break
        state, code, row, context = _rows(table, context, set_context, timeout, abort, spent)
        if state == DONE and (iteration + 1) % every == 0:
            mark = marks[(iteration + 1) // every % 2]
            state, code, row, context = _rows(mark, context, set_context, timeout, abort, spent)
            row = -1 - row
        if state == DONE:
            iteration += 1
    store(spent, load(spent) + _now(spent) - began)
    if state not in (DONE, ABORTED):
        store(abort, 1)
    return state, code, row, iteration


@compiled
def invoke(function: int, words: Any) -> int:
    """Call one driver function with eleven words; returns its result code."""
    return int(call(function, words))
