"""Job slots: all processors are shared out, groups of GPUs are those that NVLink joins, jobs see their own alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.farm import JobSlot, parse_slots
from peergrid.farm.slots import gpu_slots, nvlink_groups, share
from peergrid.machine import Gpu, Link

GPU = Gpu(
    index=0, name="GPU", uuid="", pci="", path=(), capability="9.0", multiprocessors=1, memory=1, memory_rate=1.0, l2=1,
    clock=1.0, copy_engines=1, integrated=False, numa=None, near_cpus=(), bound=False, pcie=None, advice="", flush="",
)  # fmt: skip


def link(source: int, target: int | None) -> Link:
    return Link(source, target, "NVLink", "4", 1, 25e9)


@given(cpus=st.integers(1, 40), parts=st.integers(1, 50))
def test_shares_are_all_processors_and_none_twice(cpus: int, parts: int) -> None:
    shares = [share(range(cpus), part, parts) for part in range(parts)]
    assert all(shares)
    if parts <= cpus:
        assert list(chain.from_iterable(shares)) == list(range(cpus))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_gpus_get_the_processors_near_them() -> None:
    there = [replace(GPU, index=k, near_cpus=(0, 1, 2, 3) if k < 2 else (4, 5)) for k in range(3)]
    slots = gpu_slots([(0,), (1,), (2,)], there, range(6))
    assert [slot.cpus for slot in slots] == [(0, 1), (2, 3), (4, 5)]
    assert [slot.name for slot in slots] == ["cuda:0", "cuda:1", "cuda:2"]


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([(0,), (5,)], "This machine has the CUDA devices 0, 1, got 5."),
        ([(0, 1), (1,)], "Each GPU runs one job at a time, but GPU 1 stands in --slots more than once."),
    ],
)
def test_wrong_groups(groups: list[tuple[int, ...]], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gpu_slots(groups, [replace(GPU, index=k) for k in range(2)], range(4))


def test_nvlink_groups_are_joined_each_with_each() -> None:
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3)]
    links = [link(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
    assert nvlink_groups(range(5), links) == ((0, 1, 2), (3,), (4,))
    assert nvlink_groups(range(4), [link(k, None) for k in (0, 1, 3)]) == ((0, 1, 3), (2,))


def test_jobs_see_the_gpus_of_their_slot() -> None:
    slot = JobSlot("cuda:1+2", (1, 2), (0,))
    assert slot.environment({"A": "b"}) == {"A": "b", "CUDA_VISIBLE_DEVICES": "1,2"}
    assert slot.environment({"CUDA_VISIBLE_DEVICES": "4,GPU-5, 7"})["CUDA_VISIBLE_DEVICES"] == "GPU-5,7"
    assert JobSlot("cpu:0", (), (0,)).environment({})["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("spec", ["gpu", "cuda:", "cuda:0,,1", "cuda:0+", "cpu:-1", "cuda:0;1"])
def test_what_cannot_be_read(spec: str) -> None:
    with pytest.raises(UsageError, match="Job slots are 'auto', 'cpu:4', "):
        parse_slots(spec)


def test_numbers_of_processor_slots() -> None:
    assert [slot.name for slot in parse_slots("cpu:3")] == ["cpu:0", "cpu:1", "cpu:2"]
    with pytest.raises(UsageError, match="takes 1 to 4096 job slots, got 0"):
        parse_slots("cpu:0")
