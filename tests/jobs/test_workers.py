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


@pytest.mark.parametrize("groups", [TWO[:1], TWO], ids=["here", "two processes"])
def test_every_piece_is_done_once_until_stopped(groups: tuple[Devices, ...]) -> None:
    found = dict(share_out(Squares(), range(5), groups, lambda: False))
    assert {number: square for number, (square, _) in found.items()} == {n: n * n for n in range(5)}
    stop = after(3)
    assert len(dict(share_out(Squares(), range(9), groups, lambda: next(stop)))) == 3


def test_an_error_of_a_piece_is_raised_here() -> None:
    with pytest.raises(Unstable, match=r"^number 1$"):
        list(share_out(Squares(wrong=1), range(4), TWO, lambda: False))


def test_a_worker_that_ends_is_named() -> None:
    with pytest.raises(DeviceFault, match=r"'cpu:1' ended with code 7; go on with '--resume'\.$"):
        list(share_out(Squares(fatal=0), range(4), TWO, lambda: False))
