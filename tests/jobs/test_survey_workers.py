"""Pieces of work shared out among processes: each done once, errors and ended workers named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shared_work import Squares

from peergrid.errors import DeviceFault, Unstable
from peergrid.jobs.workers import share_out
from peergrid.runtime.devices import Devices

TWO = (Devices("cpu", (0,)), Devices("cpu", (1,)))


def after(count: int) -> Iterator[bool]:
    yield from [False] * count
    while True:
        yield True


def test_pieces_are_done_here_by_one_group() -> None:
    found = dict(share_out(Squares(), range(5), TWO[:1], lambda: False))
    assert found == {n: (n * n, "cpu:1") for n in range(5)}
    stop = after(3)
    assert list(dict(share_out(Squares(), range(9), TWO[:1], lambda: next(stop)))) == [0, 1, 2]


def test_pieces_are_done_once_by_two_processes_until_stopped() -> None:
    stop = after(6)
    found = list(share_out(Squares(), range(9), TWO, lambda: next(stop)))
    assert sorted(number for number, _ in found) == list(range(6))
    assert all(square == number * number for number, (square, _) in found)


def test_an_error_of_a_piece_is_raised_here() -> None:
    with pytest.raises(Unstable, match=r"^number 1$"):
        list(share_out(Squares(wrong=1), range(4), TWO, lambda: False))


def test_a_worker_that_ends_is_named() -> None:
    with pytest.raises(DeviceFault, match=r"'cpu:1' is expected .* but ended with code 7; continue with '--resume'\.$"):
        list(share_out(Squares(fatal=0), range(4), TWO, lambda: False))
