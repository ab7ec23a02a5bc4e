"""Launch loops at the speed of C: compiled code calls the driver's own entry points, no Python per launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from peergrid.errors import DeviceFault
from peergrid.probe.cpu.spin import WARM, barrier, now

LIBRARY, MULTI_DEVICE = "libcuda.so.1", "cuLaunchCooperativeKernelMultiDevice"
WORD, COUNT = ctypes.c_uint64, ctypes.c_uint32

# Pointers and handles travel as 64-bit words; that is their form in the calling conventions of these systems.
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int32, WORD, *([COUNT] * 7), WORD, WORD, WORD)
COOPERATIVE = ctypes.CFUNCTYPE(ctypes.c_int32, WORD, *([COUNT] * 7), WORD, WORD)
ON_STREAM = ctypes.CFUNCTYPE(ctypes.c_int32, WORD)
SET_CURRENT = ctypes.CFUNCTYPE(ctypes.c_int32, WORD)
RECORD = ctypes.CFUNCTYPE(ctypes.c_int32, WORD, WORD)
AWAIT = ctypes.CFUNCTYPE(ctypes.c_int32, WORD, WORD, COUNT)
SEVERAL = ctypes.CFUNCTYPE(ctypes.c_int32, WORD, COUNT, COUNT)

Loop = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The driver's entry points as functions that compiled code can call; `several` is None if it has none."""

    launch: Any
    cooperative: Any
    synchronize: Any
    set_current: Any
    record: Any
    await_event: Any
    several: Any = None


def library() -> ctypes.CDLL:
    """The library of the NVIDIA driver in this process.

    Raises:
        DeviceFault: there is none.
    """
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceFault(f"Direct calls need the driver library '{LIBRARY}', which cannot be loaded.") from error


@cache
def entries() -> Entries:
    """The entry points of the NVIDIA driver in this process.

    Raises:
        DeviceFault: there is no driver library.
    """
    driver = library()

    def entry(kind: Any, name: str) -> Any:
        return kind(ctypes.cast(getattr(driver, name), ctypes.c_void_p).value)

    return Entries(
        entry(LAUNCH, "cuLaunchKernel"),
        entry(COOPERATIVE, "cuLaunchCooperativeKernel"),
        entry(ON_STREAM, "cuStreamSynchronize"),
        entry(SET_CURRENT, "cuCtxSetCurrent"),
        entry(RECORD, "cuEventRecord"),
        entry(AWAIT, "cuStreamWaitEvent"),
        entry(SEVERAL, MULTI_DEVICE) if hasattr(driver, MULTI_DEVICE) else None,
    )


def launches(launch: Any, synchronize: Any, cooperative: bool) -> Loop:
    """A compiled loop `(function, grid, block, stream, arguments, count, clock) → seconds`: so many launches, one wait.

    The clock is read inside, so that calling the loop costs nothing; a refusal is its code below zero. `arguments` is
    the address of the kernel's arguments' addresses, 0 for none.
    """
    if cooperative:

        @njit(nogil=True)
        def loop_cooperative(
            function: int, grid: int, block: int, stream: int, arguments: int, count: int, clock: Any
        ) -> Any:
            worst, begin = 0, now(clock)
            for _ in range(count):
                worst |= launch(function, grid, 1, 1, block, 1, 1, 0, stream, arguments)
            worst |= synchronize(stream)
            return now(clock) - begin if worst == 0 else -float(worst)

        return loop_cooperative

    @njit(nogil=True)
    def loop_plain(function: int, grid: int, block: int, stream: int, arguments: int, count: int, clock: Any) -> Any:
        worst, begin = 0, now(clock)
        for _ in range(count):
            worst |= launch(function, grid, 1, 1, block, 1, 1, 0, stream, arguments, 0)
        worst |= synchronize(stream)
        return now(clock) - begin if worst == 0 else -float(worst)

    return loop_plain


@cache
def rounds_by_waits(driver: Entries) -> Loop:
    """A compiled loop `(contexts, functions, streams, rounds) → code`: launch on all GPUs, wait for all GPUs."""
    launch, synchronize, set_current = driver.launch, driver.synchronize, driver.set_current

    @njit(nogil=True)
    def loop(contexts: Any, functions: Any, streams: Any, rounds: int) -> Any:
        worst = 0
        for _ in range(rounds):
            for at in range(contexts.size):
                worst |= set_current(contexts[at])
                worst |= launch(functions[at], 1, 1, 1, 32, 1, 1, 0, streams[at], 0, 0)
            for at in range(contexts.size):
                worst |= set_current(contexts[at])
                worst |= synchronize(streams[at])
        return worst

    return loop


@cache
def chains(driver: Entries) -> Loop:
    """A compiled loop `(contexts, functions, streams, events, rounds) → code`: a barrier of all GPUs by events.

    The first stream waits for the others' kernels, the others for the first; the host waits once, at the end.
    """
    launch, synchronize, set_current = driver.launch, driver.synchronize, driver.set_current
    record, await_event = driver.record, driver.await_event

    @njit(nogil=True)
    def loop(contexts: Any, functions: Any, streams: Any, events: Any, rounds: int) -> Any:
        worst = 0
        for _ in range(rounds):
            for at in range(contexts.size - 1, -1, -1):
                worst |= set_current(contexts[at])
                worst |= launch(functions[at], 1, 1, 1, 32, 1, 1, 0, streams[at], 0, 0)
                if at:
                    worst |= record(events[at], streams[at])
            for at in range(1, contexts.size):
                worst |= await_event(streams[0], events[at], 0)
            worst |= record(events[0], streams[0])
            for at in range(1, contexts.size):
                worst |= set_current(contexts[at])
                worst |= await_event(streams[at], events[0], 0)
        for at in range(contexts.size):
            worst |= set_current(contexts[at])
            worst |= synchronize(streams[at])
        return worst

    return loop


@cache
def together(driver: Entries) -> Loop:
    """A compiled loop `(list, contexts, streams, rounds) → code`: a launch over all GPUs per round, a wait at the end.

    `list` are the launches of all GPUs as `parameters` writes them. The driver starts none of them before all
    earlier work of all their streams has ended: the study's implicit barrier.
    """
    several, synchronize, set_current = driver.several, driver.synchronize, driver.set_current

    @njit(nogil=True)
    def loop(launches: Any, contexts: Any, streams: Any, rounds: int) -> Any:
        worst = 0
        for _ in range(rounds):
            worst |= several(launches.ctypes.data, contexts.size, 0)
        for at in range(contexts.size):
            worst |= set_current(contexts[at])
            worst |= synchronize(streams[at])
        return worst

    return loop


def parameters(functions: Any, streams: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """CUDA_LAUNCH_PARAMS of a block of 32 threads on every GPU, as words: seven per GPU, the last for no arguments."""
    pair = 1 | 1 << 32  # two neighbouring extents of one
    return np.array(
        [
            (function, pair, 1 | 32 << 32, pair, 0, stream, 0)
            for function, stream in zip(functions, streams, strict=True)
        ],
        np.uint64,
    )


@cache
def members(driver: Entries) -> Loop:
    """A compiled loop of one of several threads, each with a GPU: launch, wait for the GPU, wait at a barrier of the
    threads.

    Its arguments are context, function, stream, the threads' `words` and their number, `rounds` and a `clock` (see
    `peergrid.probe.cpu.spin`). Returns seconds after some rounds of warm-up; negative when a call or a thread failed.
    """
    launch, synchronize, set_current = driver.launch, driver.synchronize, driver.set_current

    @njit(nogil=True)
    def loop(context: int, function: int, stream: int, words: Any, threads: int, rounds: int, clock: Any) -> Any:
        worst, begin = set_current(context), now(clock)
        for number in range(1, WARM + rounds + 1):
            if number == WARM + 1:
                begin = now(clock)
            worst |= launch(function, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)
            worst |= synchronize(stream)
            if not barrier(words, number, number, threads):
                return -1.0
        return now(clock) - begin if worst == 0 else -1.0

    return loop


@cache
def starts(driver: Entries) -> Loop:
    """A compiled loop of one thread with some GPUs: launch on all of them, wait for all of them; a code that is 0.

    Its arguments are contexts, functions, streams, the threads' `words` and their number, who wait at a barrier first,
    and `times`, shape (n, 3): seconds before and after each launch and after each wait; and a `clock` as for `members`.
    """
    launch, synchronize, set_current = driver.launch, driver.synchronize, driver.set_current

    @njit(nogil=True)
    def loop(contexts: Any, functions: Any, streams: Any, words: Any, threads: int, times: Any, clock: Any) -> Any:
        worst = set_current(contexts[0])
        if not barrier(words, 1, 1, threads):
            return -1
        for at in range(contexts.size):
            times[at, 0] = now(clock)
            worst |= set_current(contexts[at])
            worst |= launch(functions[at], 1, 1, 1, 32, 1, 1, 0, streams[at], 0, 0)
            times[at, 1] = now(clock)
        for at in range(contexts.size):
            worst |= set_current(contexts[at])
            worst |= synchronize(streams[at])
            times[at, 2] = now(clock)
        return worst

    return loop


def words(handles: list[Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Handles of the driver as an array of 64-bit words."""
    return np.array([int(handle) for handle in handles], np.uint64)


def handle(value: Any) -> int:
    """A handle of the driver as a 64-bit word."""
    return int(value)
