"""When samples are taken and how long they are, on GPUs and a clock that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_gpus import Gpus, install

from peergrid.bench import measure
from peergrid.bench.measure import Case, Measured
from peergrid.bench.problems import jacobi
from peergrid.runtime.devices import Devices

STEP = 1e-4  # seconds
STEPS = 100


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    return install(monkeypatch, Gpus((700.0, 700.0)))


@pytest.fixture
def runs(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of each call, of simulations that only let time pass."""
    asked: list[int] = []

    class Passing:
        host_seconds, notes = None, ("a note",)

        def __init__(self, problem: Any, steps: int, *, devices: Devices, options: Any, norm: Any) -> None:
            self.problem, self.options, self.left = problem, options, steps

        def __enter__(self) -> Passing:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, steps: int) -> None:
            assert steps <= self.left
            self.left -= steps
            asked.append(steps)
            gpus.work(steps * STEP)

    monkeypatch.setattr(measure, "Simulation", Passing)
    return asked


def rows(gpus: Gpus, *kinds: dict[str, Any], devices: str = "cuda") -> tuple[Measured, ...]:
    """Cases on both devices, one step per pass."""
    asked: Any = Devices("cuda" if devices == "cuda" else "cpu", (0, 1))
    cases = [Case("series", lambda: jacobi(16, 16), 2, "overlap", 1, STEPS, "base", **kind) for kind in kinds]
    return measure.measure(cases, asked, None, gpus.clock)


@pytest.mark.parametrize("block", [1, None])
def test_a_case_says_how_many_steps_a_pass_takes(gpus: Gpus, runs: list[int], block: int | None) -> None:
    case = Case("series", lambda: jacobi(16, 16), 2, "overlap", 4, STEPS, "base", block=block)
    (row,) = measure.measure([case], Devices("cuda", (0, 1)), None, gpus.clock)
    assert (row.options.depth, row.options.steps_per_pass) == (4, block or 4)


def test_gpus_rest_before_every_sample(gpus: Gpus, runs: list[int]) -> None:
    (row,) = rows(gpus, {})
    assert row.steps * STEP == pytest.approx(measure.SAMPLE_SECONDS)
    rest = pytest.approx(measure.REST * row.steps * STEP)
    assert gpus.sleeps == measure.SAMPLES * [rest]
    assert runs[-8:] == 8 * [row.steps]
    assert row.samples == pytest.approx(7 * (STEP,))
    assert (row.watts, row.notes) == (None, ("a note",))


def test_a_rest_is_as_long_as_suits_the_sample_before(
    gpus: Gpus, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = gpus.work
    monkeypatch.setattr(gpus, "work", lambda seconds: work((4 if len(runs) == 3 else 1) * seconds))
    (row,) = rows(gpus, {})
    rests = [seconds / (measure.REST * row.steps * STEP) for seconds in gpus.sleeps]
    assert rests == pytest.approx([4, 1, 1, 1, 1, 1, 1])  # the warm-up, the third call, made something once


def test_compared_cases_rest_as_well(gpus: Gpus, runs: list[int]) -> None:
    rows(gpus, {"group": "t"}, {"group": "t"})
    assert len(gpus.sleeps) == 2 * measure.SAMPLES


def test_virtual_devices_do_not_rest(gpus: Gpus, runs: list[int]) -> None:
    (row,) = rows(gpus, {}, devices="cpu")
    assert gpus.sleeps == []
    assert (row.watts, row.notes) == (None, ("a note",))


def test_what_is_held_is_warm_and_never_rests(gpus: Gpus, runs: list[int]) -> None:
    (row,) = rows(gpus, {"sustained": True})
    assert gpus.sleeps == []
    assert row.steps * STEP >= 1.0
    *warm_ups, _, _, _, _, _, _, _ = runs[2:]
    assert set(runs[2:]) == {row.steps}
    assert sum(warm_ups) * STEP >= measure.SUSTAINED_WARM_UP > (sum(warm_ups) - row.steps) * STEP
    assert row.watts == pytest.approx((700, 700), rel=0.02)
    assert row.notes == ("a note", *(f"cuda:{n} was at its power limit of 700 W" for n in (0, 1)))


def test_steps_are_enough_where_the_longest_sample_is_short(
    gpus: Gpus, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LONGEST", 1)
    (row,) = rows(gpus, {"sustained": True})
    assert row.steps == measure.SUSTAINED * STEPS
    assert runs[2:] == 2 * measure.SAMPLES * [row.steps]  # of which the warm-up is half, and shorter than it should be
