"""Which devices the ranks of a run have: none twice, all of one kind, and whether they address each other's memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peergrid import UsageError
from peergrid.runtime.devices import Devices
from peergrid.runtime.ranks.gpus import Part, share, together

PAIRS = frozenset((one, two) for one in range(2) for two in range(2))
FIRST = Part("a boot", Devices("cuda", (0,)), ("x", "y"), frozenset({"H200"}), PAIRS)
SECOND = replace(FIRST, devices=Devices("cuda", (1,)))


def test_gpus_of_one_host_keep_their_numbers() -> None:
    assert together([FIRST, SECOND], 0) == (Devices("cuda", (0, 1)), True)
    assert together([SECOND, FIRST], 1) == (Devices("cuda", (1, 0)), True)


@pytest.mark.parametrize(
    "other",
    [
        replace(SECOND, host="b boot", visible=("z", "w")),
        replace(SECOND, visible=("y", "w")),
        replace(SECOND, reaches=frozenset({(1, 1)})),
    ],
)
def test_gpus_that_are_not_reached_stand_apart(other: Part) -> None:
    devices, by_address = together([FIRST, other], 0)
    assert devices.ordinals == (0, 2001)
    assert not devices.here
    assert not by_address
    assert together([FIRST, other], 1)[0].ordinals == (1000, 1)


def test_a_gpu_of_two_ranks_is_refused() -> None:
    with pytest.raises(UsageError, match="ranks 0 and 1 on 'a' would share GPU x"):
        together([FIRST, FIRST], 0)


def test_devices_of_two_kinds_are_refused() -> None:
    with pytest.raises(UsageError, match="devices of one kind"):
        together([FIRST, Part("a boot", Devices("cpu", (0,)))], 0)
    with pytest.raises(UsageError, match="got H100 and H200"):
        together([FIRST, replace(SECOND, kinds=frozenset({"H100"}))], 0)


def test_virtual_devices_are_numbered_rank_by_rank() -> None:
    parts = [Part("a", Devices("cpu", (0,))), Part("a", Devices("cpu", (0, 1)))]
    assert together(parts, 1) == (Devices("cpu", (0, 1, 2)), False)


def test_ranks_of_a_host_take_neighbouring_gpus() -> None:
    assert [share(8, rank, 4).ordinals for rank in range(4)] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [share(3, rank, 2).ordinals for rank in range(2)] == [(0,), (1, 2)]
    with pytest.raises(UsageError, match="2 GPUs for 3 ranks"):
        share(2, 0, 3)
