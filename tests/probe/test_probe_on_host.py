"""Measuring kernels as C++ on fibres: they read, add and wait for what they say."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest
from host_kernels import COMPILER, kernels, library
from test_reduction_kernels import ENDING, WORDS

from peergrid.probe.cuda.chase import chain
from peergrid.probe.cuda.hiding import SHARES

ON_HOST = {
    r'asm volatile\("ld\.global\.[^;]*;" : "=l"\(next\) : "l"\((at[^)]*)\)[^;]*;': r"next = *(const u64*)\1;",
    r'asm volatile\("add\.rn\.f32[^;]*;" : "\+f"\(p\) : "f"\(q\)\);': "p = p + q;",
    r'asm volatile\("prefetch[^;]*\];" ::"l"\(at\) : "memory"\);': "asked[count_asked++] = at;",
    r'asm volatile\("red[^"]*" ::"l"\(mine\) : "memory"\)': "atomicAdd(mine, 1u)",
}
MORE = """
inline u32 atomicAdd_system(u32* p, u32 v) { return atomicAdd(p, v); }
inline int __ffs(u32 word) { return __builtin_ffs(word); }
inline int __popc(u32 word) { return __builtin_popcount(word); }
inline u32 __match_any_sync(u32 mask, u64 value) {
  u32 word = 0;
  for (int lane = 0; lane < 32; ++lane) word |= (u32)(host::exchange((double)value, lane) == (double)value) << lane;
  return word;
}
inline bool __any_sync(u32 mask, bool p) { return __ballot_sync(mask, p) != 0; }
u64 asked[65536]; u32 count_asked = 0;
extern "C" u64 asked_at(u32 k) { return asked[k]; }
extern "C" u32 asked_in_all() { return count_asked; }
"""


@cache
def built(source: str, entry: str, types: tuple[str, ...]) -> Any:
    """The library of one kernel of a source; its `launch` takes devices, blocks, threads, addresses of arguments."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    text = resources.files("peergrid.probe.cuda").joinpath(f"kernels/{source}.cu").read_text()
    text = text.replace("\\\n", " ")
    for own, host in ON_HOST.items():
        text = re.sub(own, host, text)
    given = ", ".join(f"*({kind} const*)s[{k}]" for k, kind in enumerate(types))
    ending = ENDING.replace("ENTRY", entry).replace("GIVEN", given).replace("COUNT", str(len(types)))
    found = ctypes.CDLL(str(library(kernels(WORDS + MORE + text) + ending)))
    found.launch.restype = ctypes.c_char_p
    return found


def launch(
    source: str, entry: str, types: str, *devices: tuple[Any, ...], blocks: int = 1, threads: int = 32
) -> ctypes.CDLL:
    """One launch on each device, together; arrays go as their addresses."""
    given = [one.ctypes.data if isinstance(one, np.ndarray) else one for device in devices for one in device]
    words = [np.array([one], np.float32 if isinstance(one, float) else np.uint64) for one in given]
    pointers = (ctypes.c_void_p * len(words))(*(word.ctypes.data for word in words))
    found: ctypes.CDLL = built(source, entry, tuple(types.split(", ")))
    assert found.launch(len(devices), blocks, threads, pointers) is None
    return found


@pytest.mark.parametrize("kind", ["load", "nothing"])
def test_a_chain_with_additions_beside_it_ends_where_it_does_without(kind: str) -> None:
    memory = np.zeros(16 * 8, np.uint64)
    memory[:] = chain(memory.ctypes.data, 16, 64)
    start, out = int(memory.ctypes.data), np.zeros(2, np.uint64)
    end = start
    for _ in range(5 * (kind == "load")):
        end = int(memory[(end - start) // 8])
    for sums in (0, 3):
        launch("chase", f"beside_{kind}", "u64, u32, u32, float, u64*", (start, 5, sums, 1.0, out))
        assert out[1] == end


@pytest.mark.parametrize(("kind", "asked"), [("nothing", 0), ("l1", 32 * 20), ("l2", 32 * 20)])
def test_every_place_is_asked_for_ahead_and_then_read(kind: str, asked: int) -> None:
    memory, out = np.arange(20 * 8, dtype=np.uint64), np.zeros(2, np.uint64)
    base = int(memory.ctypes.data)
    found = launch("chase", f"ahead_{kind}", "u64, u32, u32, u32, u64*", (base, 20, 64, 6, out))
    assert out[1] == 19 * 8, "the last place was read last"
    found.asked_at.restype = ctypes.c_uint64
    assert found.asked_in_all() == asked
    if asked:
        places = [(found.asked_at(k) - base) // 64 for k in range(20)]  # of the first thread
        assert places[:14] == list(range(6, 20))
        assert max(places) < 20, "nothing behind the end is asked for"


@pytest.mark.parametrize("share", [0, 1, 10, 50, 100])
def test_a_share_of_the_pieces_is_read_from_the_other_memory(share: int) -> None:
    """The kernel stores its sum where it is the mark: one word makes up for the pieces that are not remote.

    The first thread of a warp alone reads what is not zero.
    """
    assert share in SHARES
    words, piece, mark = 100 * 1024, 1024, 0x9E3779B9
    own, remote, sink = np.zeros((words, 4), np.uint32), np.zeros((words, 4), np.uint32), np.zeros(1, np.uint32)
    remote[::piece, 0] = 1
    own[32, 0] = remote[32, 0] = mark - share
    launch("copy", "mixed", "const uint4*, const uint4*, u64, u32, u32*", (own, remote, words, share, sink))
    assert sink[0] == mark


@pytest.mark.parametrize("by", ["instruction", "language", "together"])
@pytest.mark.parametrize(("lanes", "spread"), [(1, 0), (32, 0), (1, 1), (32, 1)])
def test_as_many_lanes_add_as_are_asked_for(by: str, lanes: int, spread: int) -> None:
    words = np.zeros(128, np.uint32)
    launch("atomics", f"lanes_{by}", "u32*, u32, u32, u32", (words, lanes, spread, 5), blocks=2, threads=64)
    assert words.sum() == 5 * 4 * lanes
    if spread:
        assert (words.reshape(4, 32)[:, :lanes] == 5).all()


@pytest.mark.parametrize("gpus", [2, 3])
def test_blocks_that_stay_at_a_barrier_over_gpus_are_caught(gpus: int) -> None:
    types = "u32*, const u64*, u32, u32, u32, u32*"
    for leaves in (True, False):
        flags = [np.zeros(32 * gpus, np.uint32) for _ in range(gpus)]
        table = np.array([one.ctypes.data for one in flags], np.uint64)
        counters, caught = np.zeros((gpus, 1), np.uint32), np.zeros((gpus, 1), np.uint32)
        given = [(counters[gpu], table, gpu, gpus, int(leaves and gpu == gpus - 1), caught[gpu]) for gpu in range(gpus)]
        launch("barrier", "part_of_devices", types, *given, blocks=2)
        assert caught.sum() == (2 * gpus - 1 if leaves else 0)


def test_gpus_that_all_come_pass_barriers_again_and_again() -> None:
    flags = [np.zeros(64, np.uint32) for _ in range(2)]
    table = np.array([one.ctypes.data for one in flags], np.uint64)
    counters, fault = np.zeros((2, 1), np.uint32), np.zeros(1, np.uint32)
    given = [(counters[gpu], table, gpu, 2, 7, fault) for gpu in range(2)]
    launch("barrier", "devices", "u32*, const u64*, u32, u32, u32, u32*", *given, blocks=3)
    assert [one[::32].tolist() for one in flags] == [[7, 7], [7, 7]]
    assert counters.tolist() == [[21], [21]]
    assert not fault.any()
