"""The power of GPUs in their samples, read from counters that move every 0.1 s."""

from __future__ import annotations

import pytest
from made_up_gpus import MOVES, Gpus, install

from peergrid.bench.power import SETTLED, Meter
from peergrid.runtime.devices import Devices

BOTH = Devices("cuda", (0, 1, 0))  # the first one twice
SAMPLE, REST = 0.183, 0.277


def sampled(gpus: Gpus, rest: float, seconds: float, devices: Devices = BOTH, samples: int = 7) -> Meter:
    """The meter after some samples, which follow on others."""
    with Meter.open(devices, gpus.clock) as meter:
        gpus.work(2.0)
        if rest:
            meter.settle()
        for _ in range(samples):
            meter.sample(rest, lambda: gpus.work(seconds))
    return meter


def test_power_of_samples_on_end(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((650.0, 700.0)))
    meter = sampled(gpus, 0.0, 1.03)
    assert meter.watts() == pytest.approx((700, 650), rel=0.015)  # in the order of CUDA's numbers
    assert meter.notes() == ("cuda:0 was held at its power limit of 700 W",)
    assert gpus.sleeps == []


@pytest.mark.parametrize("seconds", [0.1, SAMPLE, 0.25])
def test_rests_are_not_counted(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    gpus = install(monkeypatch, Gpus((500.0, 900.0)))
    meter = sampled(gpus, REST, seconds)
    assert meter.watts() == pytest.approx((900, 500), rel=0.06)
    assert gpus.sleeps == [SETTLED] + 7 * [REST, SETTLED]
    assert SETTLED >= MOVES


def test_what_nvml_says_was_not_braked_is_not_called_held(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0), braked=False))
    assert sampled(gpus, 0.0, 1.0).notes() == ()
    gpus.refused = {"violation"}
    assert len(sampled(gpus, 0.0, 1.0).notes()) == 2


@pytest.mark.parametrize("watts", [660.0, 740.0])
def test_power_off_the_limit_is_not_called_held(monkeypatch: pytest.MonkeyPatch, watts: float) -> None:
    gpus = install(monkeypatch, Gpus((watts, watts)))
    assert sampled(gpus, 0.0, 1.0).notes() == ()


def test_without_a_limit_there_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    gpus.refused = {"limit"}
    meter = sampled(gpus, 0.0, 1.0)
    assert (len(meter.watts() or ()), meter.notes()) == (2, ())


def test_without_counters_samples_rest_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    gpus.refused = {"energy"}
    meter = sampled(gpus, REST, SAMPLE)
    assert (meter.watts(), meter.notes()) == (None, ())
    assert gpus.sleeps == 7 * [REST]


def test_counters_that_end_leave_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    with Meter.open(BOTH, gpus.clock) as meter:
        meter.sample(0.0, lambda: gpus.work(1.0))
        assert meter.watts() is not None
        gpus.refused = {"energy"}
        meter.sample(0.0, lambda: gpus.work(1.0))
        assert meter.watts() is None


def test_samples_that_take_no_time_have_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    meter = sampled(gpus, 0.0, 0.0)
    assert (meter.watts(), meter.notes()) == (None, ())


def test_virtual_devices_have_no_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    assert sampled(gpus, 0.0, 1.0, Devices("cpu", (0, 1))).watts() is None
