"""The kernels of reductions as C++ on fibres: right sums, the same bits every way and on any number of devices."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from host_kernels import COMPILER, kernels, library

from peergrid.probe.cuda.reduction import ALONE, CHUNKS, FEWEST, LINE, MOST, PAIR, THREADS, chunk_of, shares
from peergrid.probe.cuda.warp_sum import SUM, WAYS

WORDS = """
typedef unsigned u32; typedef unsigned long long u64;
#define BUDGET 1000
inline u64 clock64() { static u64 now; return ++now; }
inline bool reached(u32 seen, u32 value) { return (int)(seen - value) >= 0; }
inline u32 load_acquire_gpu(const u32* at) { host::yield(); return *at; }
inline void store_release_sys(u32* at, u32 value) { *at = value; }
inline u32 add_acq_rel_gpu(u32* at, u32 value) { const u32 before = *at; *at += value; return before; }
inline void fence_sys() {}
inline bool await_sys(const u32* at, u32 value, u64 budget) {
  for (u64 n = 0; n < 10000; ++n, host::yield()) if (reached(*at, value)) return true;
  return false;
}
inline u32 __fns(u32 mask, u32 base, int n) {
  for (u32 k = base; k < 32; ++k) if (mask >> k & 1 && !--n) return k;
  return ~0u;
}
inline u32 __activemask() { return ~0u; }
#define volatile
"""
OWN = {
    'asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");': "if (mask != 1) host::meet_warp();",
    'asm volatile("" ::: "memory");': "host::meet_warp();",
}
NAMES = {
    "warps[": "warps_at[",
    "values[": "values_at[",
    "parts[": "parts_at[",
    "last = add": "*last_at = add",
    "if (last)": "if (*last_at)",
    "if (!last)": "if (!*last_at)",
}
ENDING = """
static void kernel(const void* const* s) { ENTRY(GIVEN); }
extern "C" const char* launch(int devices, int blocks, int threads, const void* const* structs) {
  return host::together(kernel, structs, COUNT, devices, blocks, threads, 0);
}
"""
TYPES = {
    "chunks": ("const double2*", "u64", "u32", "double*"),
    "of_chunks": ("const double*", "u32", "double*"),
    "by_grid_barrier": ("const double2*", "u64", "u32", "double*", "u32", "double*", "u32*", "u32", "u32*"),
    "by_one_block": ("const double2*", "u32", "double*"),
    "by_last_block": (
        "const double2*", "u64", "u32", "double*", "double*", "u32", "u32", "double*", "u32*", "u32*",
        "u32", "u32", "u32", "u32*",
    ),
}  # fmt: skip


def text() -> str:
    """The source with the host's words, block-wide shared memory as one array for all threads of a block."""
    source = resources.files("peergrid.probe.cuda").joinpath("kernels/reduction.cu").read_text()
    for own, host in OWN.items():
        source = source.replace(own, host)
    shared = (
        "__shared__ double warps[THREADS / 32];",
        "__shared__ bool last;",
        "__shared__ type values[32];",
        "__shared__ double parts[4 * THREADS / 32];",
    )
    for place, declared in enumerate(shared):
        kind, name = declared.removeprefix("__shared__ ").split("[")[0].removesuffix(";").split()
        assert declared in source
        source = source.replace(declared, f"{kind}* const {name}_at = ({kind}*)(host::memory() + {512 * place});")
    for own, host in NAMES.items():
        source = source.replace(own, host)
    return source


@cache
def compiled(entry: str, types: tuple[str, ...]) -> Any:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    given = ", ".join(f"*({kind}*)s[{k}]" for k, kind in enumerate(f"{one} const" for one in types))
    ending = ENDING.replace("ENTRY", entry).replace("GIVEN", given).replace("COUNT", str(len(types)))
    ending = ending.replace(", 0);", ", 2048);")
    launch = ctypes.CDLL(str(library(kernels(WORDS + text()) + ending))).launch
    launch.restype = ctypes.c_char_p
    return launch


def launch(
    entry: str, blocks: int, *devices: tuple[Any, ...], types: tuple[str, ...] = (), threads: int = THREADS
) -> None:
    """One launch on each device, together; arrays go as their addresses, numbers as 64 bits."""
    given = [one.ctypes.data if isinstance(one, np.ndarray) else one for device in devices for one in device]
    words = [np.array([one], np.uint64) for one in given]
    pointers = (ctypes.c_void_p * len(words))(*(word.ctypes.data for word in words))
    assert compiled(entry, types or TYPES[entry])(len(devices), blocks, threads, pointers) is None


def numbers(pairs: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    drawn = np.random.default_rng(3).standard_normal(2 * pairs + 2)
    skip = drawn.ctypes.data % PAIR // 8
    return drawn[skip : skip + 2 * pairs]


def by_two_kernels(values: np.ndarray[Any, Any]) -> float:
    pairs = len(values) // 2
    chunk = chunk_of(pairs)
    count = -(-pairs // chunk)
    partials, out = np.full(count, np.nan), np.full(1, np.nan)
    launch("chunks", count, (values, pairs, chunk, partials))
    launch("of_chunks", 1, (partials, count, out))
    return float(out[0])


@pytest.mark.parametrize("pairs", [1, 63, 700, 5 * FEWEST + 3])
def test_sums_are_right_and_the_same_bits_by_every_barrier(pairs: int) -> None:
    values, chunk, out, fault = numbers(pairs), chunk_of(pairs), np.full(1, np.nan), np.zeros(1, np.uint32)
    expected, count = by_two_kernels(values), -(-pairs // chunk)
    assert expected == pytest.approx(math.fsum(values), abs=1e-9)
    counter, partials = np.zeros(1, np.uint32), np.full(count, np.nan)
    for goal in (2, 4):
        launch("by_grid_barrier", 2, (values, pairs, chunk, partials, count, out, counter, goal, fault))
        assert out[0] == expected
    counter[0] = 0
    flags = np.zeros(LINE, np.uint32)
    for _ in range(2):
        partials[:], out[0] = np.nan, np.nan
        given = (values, pairs, chunk, partials, partials, 0, count, out, counter, flags, 0, 1, 1, fault)
        launch("by_last_block", count, given)
        assert out[0] == expected
        assert counter[0] == 0
    assert not fault.any()


@pytest.mark.parametrize("gpus", [2, 3])
def test_several_devices_leave_the_bits_of_one(gpus: int) -> None:
    pairs = 7 * FEWEST + 5
    values, chunk, out, fault = numbers(pairs), chunk_of(pairs), np.full(1, np.nan), np.zeros(1, np.uint32)
    count, flags = -(-pairs // chunk), np.zeros(32 * gpus, np.uint32)
    partials, counters = np.full(count, np.nan), np.zeros((gpus, 1), np.uint32)
    mine = [partials, *(np.full(count, np.nan) for _ in range(gpus - 1))]
    blocks = 3
    given: list[tuple[Any, ...]] = []
    for gpu, (lo, hi) in enumerate(shares(pairs, gpus)):
        places = (values[2 * lo :], hi - lo, chunk, mine[gpu], partials, lo // chunk, count)
        given.append((*places, out, counters[gpu], flags, gpu, gpus, 1, fault))
    launch("by_last_block", blocks, *given)
    assert out[0] == by_two_kernels(values)
    assert not fault.any()
    assert flags[32 * (gpus - 1)] == 1


@pytest.mark.parametrize("pairs", [1, 64, FEWEST, FEWEST + 1, 3 * FEWEST - 7, 4 * FEWEST])
def test_one_block_leaves_the_same_bits(pairs: int) -> None:
    """Up to four chunks; zeros of either sign, too."""
    for values in (numbers(pairs), -numbers(pairs), np.zeros(2 * pairs), np.full(2 * pairs, -0.0)):
        out = np.full(1, np.nan)
        launch("by_one_block", 1, (values, pairs, out))
        assert out.tobytes() == np.float64(by_two_kernels(values)).tobytes()
    assert ALONE == 4 * FEWEST * PAIR


def test_a_gpu_that_never_says_so_is_noticed() -> None:
    pairs, out, fault = 64, np.zeros(1), np.zeros(1, np.uint32)
    words = np.zeros(64, np.uint32)
    partials = np.zeros(1)
    given = (
        numbers(pairs),
        pairs,
        FEWEST,
        partials,
        partials,
        0,
        1,
        out,
        np.zeros(1, np.uint32),
        words,
        0,
        2,
        1,
        fault,
    )
    launch("by_last_block", 1, given)
    assert fault[0] == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("serial", "nosync")])
def test_sums_of_a_warp(way: str) -> None:
    """But those of one thread, which fibres run by warps of 32, and the one without barriers, which is wrong."""
    out, sink = np.zeros(1, np.uint64), np.zeros(1)
    types = ("u32", "u32", "u64*", "double*")
    launch(f"sum32_{way.replace(' ', '_')}", 1, (3, 2**32 - 1, out, sink), types=types, threads=32)
    assert sink[0] == SUM


@pytest.mark.parametrize("gpus", [1, 2, 3, 7])
def test_shares_are_whole_chunks_and_all_of_them(gpus: int) -> None:
    for pairs in (1, 64, 9999, 1 << 20, (1 << 26) + 1):
        parts, chunk = shares(pairs, gpus), chunk_of(pairs)
        assert parts[0][0] == 0
        assert parts[-1][1] == pairs
        assert all(one[1] == two[0] for one, two in pairwise(parts))
        assert all(lo % chunk == 0 for lo, hi in parts if lo < hi)


def test_chunks_grow_with_the_numbers_alone() -> None:
    assert [chunk_of(pairs) for pairs in (1, FEWEST * CHUNKS, FEWEST * CHUNKS + 1, 1 << 30)] == [512, 512, 1024, MOST]
