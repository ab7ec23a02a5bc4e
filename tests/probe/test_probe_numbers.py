"""Samples into numbers: medians, intervals, and the paper's equations 6 to 8."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.probe.experiment import (
    deviation_of_difference,
    differences,
    fusion_overhead,
    quantile,
    result,
)

FINITE = st.floats(1e-9, 1e12, allow_nan=False)


@given(st.lists(FINITE, min_size=1, max_size=40))
def test_the_median_lies_inside_and_the_interval_covers_the_centre(samples: list[float]) -> None:
    found = result("q", "s", samples)
    low, high = found.interval
    assert found.median == statistics.median(samples)
    assert low <= found.median <= high
    assert found.uncertainty >= 0.01 * found.median * 0.999
    ordered = sorted(samples)
    assert low <= quantile(ordered, 0.05) * (1 + 1e-9)
    assert high >= quantile(ordered, 0.95) * (1 - 1e-9)


def test_quantile_agrees_with_numpy() -> None:
    values = sorted([3.0, 1.0, 4.0, 1.5, 9.0])
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        assert quantile(values, share) == pytest.approx(np.quantile(values, share))


def test_no_samples_is_a_fault() -> None:
    with pytest.raises(ValueError, match="'q' needs finite samples, but got none"):
        result("q", "s", [])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_sample_that_is_no_number_is_a_fault(bad: float) -> None:
    with pytest.raises(ValueError, match="'q' needs finite samples, but got one that is not finite"):
        result("q", "s", [1.0, bad])


@given(st.floats(1e-9, 1e-3), st.floats(0, 1e-2), st.integers(1, 50), st.integers(1, 50))
def test_differences_remove_what_does_not_repeat(each: float, fixed: float, few: int, more: int) -> None:
    many = few + more
    shorter, longer = [fixed + few * each] * 3, [fixed + many * each] * 3
    assert differences(longer, shorter, many, few) == pytest.approx([each] * 3, rel=1e-3, abs=1e-12)


def test_deviation_is_equation_8() -> None:
    longer, shorter = [10.0, 12.0, 11.0], [4.0, 4.5, 5.0]
    wanted = math.sqrt(statistics.variance(longer) + statistics.variance(shorter)) / (20 - 10)
    assert deviation_of_difference(longer, shorter, 20, 10) == pytest.approx(wanted)


def test_fusion_is_equation_6() -> None:
    overhead, wait = 1.0e-6, 10e-6
    many, few = 5, 1
    many_short = many * (overhead + few * wait)
    few_long = few * (overhead + many * wait)
    assert fusion_overhead(many_short, few_long, many, few) == pytest.approx(overhead)
