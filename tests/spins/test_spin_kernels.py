"""The CUDA kernels of half steps, as C++ on fibres: the words of the reference, on one device and on several."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from spin_driver import compiled

from peergrid.codegen.nvrtc import resources
from peergrid.spins import BipartiteGraph, random_graph
from peergrid.spins.gpus import LINE_BYTES, MOST, RELAXATION, THREADS, blocks, shares, source
from peergrid.spins.rule import first_words, half_step, thresholds

COUPLING, SEED = 0.4, 0x123456789ABCDEF


class Devices:
    """Virtual GPUs: memory, structs and launches as `gpus` makes them."""

    def __init__(self, graph: BipartiteGraph, count: int) -> None:
        self.shares = shares(graph.words, count)
        self.first = first_words(graph.words, SEED)
        self.words = np.stack([np.stack([self.first] * MOST)] * 2)
        self.flags = np.zeros((count, MOST * LINE_BYTES // 8), np.int64)
        self.own = np.zeros((count, 2), np.int64)
        self.structs = np.zeros(count, RELAXATION)
        self.neighbours = [graph.red.copy(), graph.blue.copy()]
        for gpu, (lo, hi) in enumerate(self.shares):
            one = self.structs[gpu : gpu + 1]
            one["neighbours"] = [side[lo * 32 :].ctypes.data for side in self.neighbours]
            one["words"] = [[self.words[c, g].ctypes.data for g in range(MOST)] for c in (0, 1)]
            one["flags"][0, :count] = [flags.ctypes.data for flags in self.flags]
            one["arrived"], one["fault"] = self.own[gpu].ctypes.data, self.own[gpu, 1:].ctypes.data
            one["budget"], one["first"], one["last"], one["me"], one["gpus"] = 10**9, lo, hi, gpu, count
            one["limits"], one["seed"] = thresholds(COUPLING), (SEED & 0xFFFFFFFF, SEED >> 32)

    def run(self, launch: Any, step: int) -> None:
        number = np.array([step], np.uint64)
        count = len(self.shares)
        pointers = [at for gpu in range(count) for at in (self.structs[gpu:].ctypes.data, number.ctypes.data)]
        fault = launch(count, max(map(blocks, self.shares)), (ctypes.c_void_p * len(pointers))(*pointers))
        assert fault is None


def expected(graph: BipartiteGraph, steps: int) -> list[np.ndarray[Any, Any]]:
    colours = [first_words(graph.words, SEED)] * 2
    for step in range(steps):
        target = 1 - step % 2
        neighbours = (graph.red, graph.blue)[target]
        whole = (0, graph.words)
        colours[target] = half_step(neighbours, colours[1 - target], whole, step, SEED, thresholds(COUPLING))
    return colours


@pytest.mark.parametrize(("words", "count"), [(67, 1), (67, 3), (256, 2)])
def test_stored_words_are_those_of_the_reference_on_every_device(words: int, count: int) -> None:
    """67 words: shares that begin and end within groups and quads."""
    graph = random_graph(words * 32, 5)
    devices, launch = Devices(graph, count), compiled("half_step_and_store")
    for step in range(3):
        devices.run(launch, step)
    for colour, want in enumerate(expected(graph, 3)):
        for gpu in range(count):
            assert np.array_equal(devices.words[colour, gpu], want), (colour, gpu)
    assert not devices.own[:, 1].any()
    assert all(devices.flags[gpu, 16 * other] == 3 for gpu in range(count) for other in range(count))


def test_a_device_writes_its_own_words_alone_where_copies_bring_them() -> None:
    graph = random_graph(67 * 32, 5)
    devices = Devices(graph, 3)
    devices.run(compiled("half_step"), 0)
    want = expected(graph, 1)[1]
    for gpu, (lo, hi) in enumerate(devices.shares):
        assert np.array_equal(devices.words[1, gpu, lo:hi], want[lo:hi])
        assert np.array_equal(np.delete(devices.words[1, gpu], slice(lo, hi)), np.delete(devices.first, slice(lo, hi)))


def test_a_device_that_waits_in_vain_says_so() -> None:
    """Without the others' flags of the half steps before, the third cannot begin."""
    devices = Devices(random_graph(64 * 32, 5), 2)
    devices.structs["budget"] = 1000
    devices.run(compiled("half_step_and_store"), 2)
    assert devices.own[:, 1].all()


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_kernels_compile_without_spills(architecture: str) -> None:
    assert {name: found.spills for name, found in resources(source(), architecture).items()} == {
        "half_step": 0,
        "half_step_and_store": 0,
    }
    assert THREADS == 256
