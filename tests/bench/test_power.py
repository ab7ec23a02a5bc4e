"""The power of GPUs that are held at work, read from counters that move every 0.1 s."""

from __future__ import annotations

import pytest
from made_up_gpus import Gpus, install

from peergrid.bench.power import PowerMeter
from peergrid.runtime.devices import Devices

BOTH = Devices("cuda", (0, 1, 0))  # the first one twice
Found = tuple[tuple[float, ...] | None, tuple[str, ...]]


def metered(gpus: Gpus, seconds: float = 7.03, devices: Devices = BOTH) -> Found:
    """What is found of some work that follows on other work."""
    with PowerMeter.open(devices, gpus.clock.now) as meter:
        gpus.work(2.04)
        meter.begin()
        gpus.work(seconds)
        watts = meter.watts()
        return watts, meter.notes(watts)


def test_power_of_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    watts, notes = metered(install(monkeypatch, Gpus((650.0, 700.0))))
    assert watts == pytest.approx((700, 650), rel=0.015)  # in the order of CUDA's numbers
    assert notes == ("cuda:0 was at its power limit of 700 W",)


@pytest.mark.parametrize("drawn", [660.0, 740.0])
def test_power_off_the_limit_is_not_noted(monkeypatch: pytest.MonkeyPatch, drawn: float) -> None:
    assert metered(install(monkeypatch, Gpus((drawn, drawn))))[1] == ()


def test_without_a_limit_there_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    gpus.refused = {"limit"}
    watts, notes = metered(gpus)
    assert (len(watts or ()), notes) == (2, ())


def test_without_counters_there_is_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    gpus.refused = {"energy"}
    assert metered(gpus) == (None, ())


def test_counters_that_end_leave_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = install(monkeypatch, Gpus((700.0, 700.0)))
    with PowerMeter.open(BOTH, gpus.clock.now) as meter:
        meter.begin()
        gpus.work(1.0)
        assert meter.watts() is not None
        gpus.refused = {"energy"}
        assert meter.watts() is None


def test_no_time_has_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    assert metered(install(monkeypatch, Gpus((700.0, 700.0))), 0.0) == (None, ())


def test_virtual_devices_have_no_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert metered(install(monkeypatch, Gpus((700.0, 700.0))), devices=Devices("cpu", (0, 1))) == (None, ())
