"""Independent kernels, bytes of atomics, copies that wait, addresses, timers, flushes: on a pretended driver."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("cuda.core")

from pretend_calls import needs_nvrtc, recording
from pretend_driver import ATTRIBUTES, PretendDriver

from peergrid.probe import Bench, Measurement
from peergrid.probe.cpu import spin
from peergrid.probe.cuda import addressing, hostloop, independent, ordering, pitfalls, remote_atomics
from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.experiment import Lack


def test_independent_kernels_are_launched_before_any_is_waited_for() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    contexts, functions, streams = (np.arange(3, dtype=np.uint64) + 10 * at for at in (1, 2, 3))
    times = np.zeros((3, 3))
    loop = hostloop.starts(recording(calls))
    assert loop(contexts, functions, streams, spin.lines(2), 1, times, np.zeros(2, np.int64)) == 0
    assert [name for name, _ in calls if name != "use"] == ["launch"] * 3 + ["wait"] * 3
    assert [item[0] for name, item in calls if name == "use"] == [10, 10, 11, 12, 10, 11, 12]
    before, launched, ended = times.T
    assert (before <= launched).all()
    assert (before[1:] >= launched[:-1]).all()
    assert (ended >= launched.max()).all()
    gap, seconds = independent._sample(lambda count: times[:count], 3)
    assert gap == launched[2] - launched[0]
    assert seconds == ended[2] - before[0]


@needs_nvrtc
def test_bytes_of_a_warp_are_counted_for_each_of_its_additions(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = list(remote_atomics.run(Bench(quick=True, devices=devices)))
    bytes_of = {
        (item.at["by"], item.at["lanes"], item.at["words"]): item.median
        for item in found
        if isinstance(item, Measurement) and item.quantity == "warp_atomic_bytes"
    }
    sent = {(1, "one word"): 32, (1, "own words"): 32, (32, "one word"): 32, (32, "own words"): 128}
    assert bytes_of == {
        (by, *case): count for by in ("red", "atomicAdd", "one lane for all") for case, count in sent.items()
    }


class Raised:
    """A timer whose time has come as soon as somebody waits for it, however busy the machine is."""

    latest: Raised

    def __init__(self, seconds: float, raise_word: Callable[..., None], arguments: tuple[int, int]) -> None:
        self._raise_word, self._arguments = raise_word, arguments

    def start(self) -> None:
        Raised.latest = self

    def join(self) -> None:
        self._raise_word(*self._arguments)


@needs_nvrtc
@pytest.mark.parametrize("returns", [True, False])
def test_a_copy_that_waits_for_its_stream_does_not_return_at_once(
    returns: bool, pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Timer", Raised)
    if not returns:  # the call comes back when the word was raised, as the driver's does
        pretended.cuMemcpyHtoDAsync = lambda *a: (0, Raised.latest.join())  # type: ignore[attr-defined]
        pretended.cuMemcpyDtoHAsync = lambda *a: (0, Raised.latest.join())  # type: ignore[attr-defined]
    with Gpus.open(pretended) as devices:
        found = list(addressing._returns(devices))
    assert {item.median for item in found} == {float(returns)}
    assert len(found) == 4


@needs_nvrtc
@pytest.mark.parametrize(("step", "alternate"), [(1, 1.0), (1 << 36, 0.0)])
def test_addresses_in_turns_alternate_unless_each_gpu_has_a_place_of_its_own(
    step: int, alternate: float, pretended: PretendDriver
) -> None:
    taken = iter(range(1, 1000))
    pretended.held["memory"] = 0
    pretended.calls["cuMemAlloc"] = lambda size: next(taken) * (4 << 20) + pretended.current * step * (1 << 8)
    with Gpus.open(pretended) as devices:
        assert float(addressing._alternate(devices)) == alternate


@needs_nvrtc
def test_timers_of_a_barrier_begin_at_the_first_arrival(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = [item for item in pitfalls.run(Bench(quick=True, devices=devices)) if isinstance(item, Measurement)]
    timers = [item for item in found if item.quantity == "warp_timer" and item.at["kind"] == "tile"]
    assert [item.median for item in timers] == [*range(32), *[100.0] * 32]
    assert [item.at for item in found if item.at.get("level") == "several GPUs"] == [
        {"level": "several GPUs", "devices": 3}
    ]


def test_without_a_flush_by_the_host_that_is_said(pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTRIBUTES, "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", 2)
    with Gpus.open(pretended) as devices:
        (lack,) = ordering._flushes(Bench(devices=devices))
    assert isinstance(lack, Lack)
    assert "it offers none to the host" in lack.what
