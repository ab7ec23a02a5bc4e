"""How often later medians lie inside earlier intervals."""

from __future__ import annotations

import pytest
from probe_examples import profile

from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import Profile
from peergrid.probe.spread import stability, strayed


def runs(*medians: float, uncertainty: float = 1.0, later: float | None = None) -> list[Profile]:
    """One number over several runs; `later` is the uncertainty of all but the first."""
    widths = [uncertainty] + [uncertainty if later is None else later] * (len(medians) - 1)
    return [
        profile(Measurement("q", "s", {"a": 1}, median, 0.0, width, (median,)))
        for median, width in zip(medians, widths, strict=True)
    ]


@pytest.mark.parametrize(
    ("medians", "hold"),
    [((10, 10.5, 9.5, 11.0, 9.0, 13.0), 1.0), ((10, 10.5, 9.5, 11.0, 13.0, 13.0), 0.0), ((10, 11.5), 0.0)],
)
def test_four_of_five_must_lie_inside_the_first_interval(medians: tuple[float, ...], hold: float) -> None:
    series = runs(*medians)
    assert stability(series)[0].hold == hold
    assert len(strayed(series)) == 1 - hold


def test_all_pairs_both_ways() -> None:
    (found,) = stability(runs(10.0, 12.0, uncertainty=1.0, later=3.0))
    assert (found.numbers, found.hold, found.inside) == (1, 0.0, 0.5)
    assert found.width == pytest.approx(0.1)
    assert found.moved == pytest.approx(0.2)


def test_a_number_that_only_one_run_has_is_not_judged() -> None:
    assert stability([profile(Measurement("q", "s", {}, 1.0, 0.0, 0.1, (1.0,))), profile()]) == ()


def test_a_count_that_is_zero_stays_zero() -> None:
    (found,) = stability(runs(0.0, 0.0, uncertainty=0.0))
    assert (found.hold, found.inside, found.width, found.moved) == (1.0, 1.0, 0.0, 0.0)


def test_what_strayed_is_named() -> None:
    (found,) = strayed(runs(10.0, 20.0, 21.0))
    assert (found.quantity, found.at, found.first, found.later) == ("q", {"a": 1}, 10.0, (20.0, 21.0))
