"""The choice of how traces share devices, from what is predicted of their steps."""

from __future__ import annotations

from math import inf

import pytest

from peergrid.errors import UsageError
from peergrid.jobs.share import Host, Share, Steps, fastest, groups
from peergrid.models import BuiltModel, parse
from peergrid.runtime.devices import Devices

BUILT: BuiltModel = parse("[grid]\nsize = [0.4, 0.3]\nspacing = 0.01\nsteps = 10\n").build()
GPUS = Devices("cuda", (4, 5))


def chosen(traces: int, *seconds: float, room: int = 9, each: int | None = None) -> tuple[int, int]:
    """Devices of a trace, and traces at a time, on two GPUs; seconds: of a trace on one of them, and on both."""
    share = fastest(BUILT, GPUS, traces, each, Host(6, lambda _, devices: Steps(seconds[devices.count - 1], room)))
    return share.each, share.at_once


def test_long_traces_have_a_gpu_each_and_a_single_one_has_both() -> None:
    assert chosen(60, 100.0, 55.0) == (1, 2)
    assert chosen(1, 100.0, 55.0) == (2, 1)
    assert chosen(3, 100.0, 51.0) == (2, 1), "three rounds on both take less than two on one"
    assert chosen(60, inf, 55.0) == (2, 1), "one has too little memory"
    assert chosen(60, 100.0, 55.0, each=2) == (2, 1)


def test_short_traces_share_a_gpu_where_there_is_room() -> None:
    assert chosen(600, 0.05, 0.05) == (1, 6)
    assert chosen(600, 0.05, 0.05, room=2) == (1, 4)
    assert chosen(4, 0.05, 0.05) == (2, 1), "not worth the start of processes"


def test_the_time_is_that_of_the_fullest_gpu() -> None:
    share = fastest(BUILT, GPUS, 3, None, Host(2, lambda _, devices: Steps(10.0 / devices.count**0.1, 1)))
    assert share.seconds == pytest.approx(3.0 + 2 * (0.34 + 10.0))


def test_virtual_devices() -> None:
    four = Devices("cpu", (0, 1, 2, 3))
    assert fastest(BUILT, four, 60) == Share(1, 4)
    assert fastest(BUILT, four, 1) == Share(4, 1)
    assert fastest(BUILT, four, 60, each=2) == Share(2, 2)
    for wrong in (0, 3, 8):
        with pytest.raises(UsageError, match=r"^The devices of each trace are expected to divide 4, "):
            fastest(BUILT, four, 60, each=wrong)


def test_processes_are_dealt_out_over_gpus() -> None:
    found = groups(GPUS, Share(1, 3))
    assert [devices.ordinals for devices in found] == [(4,), (5,), (4,)]
    assert [devices.ordinals for devices in groups(Devices("cuda", (0, 1, 2, 3)), Share(2, 2))] == [(0, 1), (2, 3)]
