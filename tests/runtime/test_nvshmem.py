"""Messages put by NVSHMEM: their parts, the heap of all ranks, and what is refused."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import DoesNotFit, UsageError
from peergrid.runtime.cuda.lowering.put import MOST_PARTS, PART_BYTES, parts
from peergrid.runtime.cuda.lowering.transfer import Side, Transfer
from peergrid.runtime.ranks import nvshmem
from peergrid.runtime.ranks.nvshmem import Nvshmem
from peergrid.runtime.ranks.ranks import Ranks


def moved(transfer: Transfer) -> list[tuple[int, int, int]]:
    """Source, target and bytes of each run."""
    steps = [range(count) for count in transfer.counts]
    sides = (transfer.source, transfer.target)
    return [
        (*(side.address + sum(map(int.__mul__, place, side.pitches)) for side in sides), transfer.run)
        for place in product(*steps)
    ]


@given(st.lists(st.integers(1, 40), max_size=2), st.sampled_from((4, 20, 1 << 12, 3 * PART_BYTES + 4)))
def test_parts_of_a_message_are_its_bytes_once(counts: list[int], run: int) -> None:
    pitches = tuple(run * 50 ** (len(counts) - axis) for axis in range(len(counts)))
    whole = Transfer(Side(1000, pitches), Side(9000, tuple(2 * pitch for pitch in pitches)), tuple(counts), run)
    found = list(parts(whole))
    assert 1 <= len(found) <= MOST_PARTS
    runs = sorted(one for part in found for one in moved(part))
    if counts:
        assert runs == sorted(moved(whole))
        return
    assert [source - 1000 for source, _, _ in runs] == [target - 9000 for _, target, _ in runs]
    assert [source for source, _, _ in runs] == [1000, *(source + count for source, _, count in runs[:-1])]
    assert sum(count for _, _, count in runs) == run


class Library:
    """NVSHMEM's heap on the host, with room for so many bytes."""

    def __init__(self, room: int) -> None:
        self.room, self.live = room, dict[int, int]()

    def calloc(self, count: int, size: int) -> int:
        if sum(self.live.values()) + count * size > self.room:
            return 0
        address = 4096 * (1 + len(self.live))
        self.live[address] = count * size
        return address

    def free(self, pointer: int) -> None:
        del self.live[pointer]


@pytest.fixture
def alone() -> Ranks:
    mpi = pytest.importorskip("mpi4py.MPI")
    return Ranks(mpi.COMM_SELF, (0,))


def test_freed_memory_of_the_heap_is_given_back_by_the_next_allocation(
    alone: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(room=100)
    monkeypatch.setattr(nvshmem, "_missing", str)
    monkeypatch.setattr(nvshmem, "_joined", lambda ranks: library)
    heap = Nvshmem(alone)
    first = heap.allocate(60)
    with pytest.raises(DoesNotFit, match="no room for 60 bytes on every GPU"):
        heap.allocate(60)
    heap.free(first)
    assert first in library.live
    heap.allocate(60)
    assert sum(library.live.values()) == 68


def test_ranks_without_the_library_or_with_several_gpus_are_refused(
    alone: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvshmem, "_missing", lambda: "No module named 'nvshmem' (install it)")
    with pytest.raises(UsageError, match=r"needs NVSHMEM on every rank: No module .* \(install it\); or use 'nccl'"):
        Nvshmem(alone)
    monkeypatch.setattr(nvshmem, "_missing", str)
    with pytest.raises(UsageError, match="needs one GPU on every rank"):
        Nvshmem(Ranks(alone.comm, (0, 0)))


def test_virtual_devices_have_no_route_nvshmem(alone: Ranks) -> None:
    with pytest.raises(UsageError, match="The route 'nvshmem' joins GPUs"):
        alone.by("nvshmem", "cpu")
