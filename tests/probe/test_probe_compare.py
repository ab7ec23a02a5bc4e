"""Comparing two profiles, and flagging what is clearly below its expected value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from probe_examples import machine, number, profile

from peergrid.machine import Link
from peergrid.probe.compare import Expected, compared, differences, expected, flags
from peergrid.probe.experiment import Result
from peergrid.probe.profile import Profile


def pair(value: float, source: int = 0) -> Result:
    return number("peer_copy_bandwidth", value, source=source, target=1, route="copy engine", ways=1)


def test_noise_is_no_difference() -> None:
    assert differences(profile(pair(1.01e11)), profile(pair(1.00e11))) == ()


@pytest.mark.parametrize(("apart", "found"), [(1.5, 0), (2.5, 1)])
def test_the_noise_of_both_counts(apart: float, found: int) -> None:
    one, other = (Result("q", "s", {}, value, 0.0, 1.0, (value,)) for value in (10.0, 10.0 + apart))
    assert len(differences(profile(one), profile(other))) == found


def test_more_than_noise_is_one() -> None:
    (found,) = differences(profile(pair(2e11), pair(1e11, 2)), profile(pair(1e11), pair(1e11, 2)))
    assert (found.at["source"], found.ratio) == (0, pytest.approx(2.0))


def test_only_common_numbers_are_compared() -> None:
    assert compared(profile(pair(1.0), pair(1.0, 3)), profile(pair(1.0))) == 1


def test_a_slow_link_is_flagged() -> None:
    (flag,) = flags(profile(pair(3.9e11), pair(1.0e11, 3), gpus=8))
    assert (flag.at["source"], flag.found, flag.expected) == (3, 1.0e11, 3.96e11)


def test_other_hardware_is_not_judged() -> None:
    assert flags(profile(pair(1.0e11))) == ()
    assert expected(machine()) == ()


@pytest.mark.parametrize(("better", "value", "flagged"), [("less", 1.4, 0), ("less", 1.7, 1), ("more", 1.7, 0)])
def test_direction(better: str, value: float, flagged: int) -> None:
    table = (Expected("H200", "q", {}, 1.0, "s", better, 0.5, "somewhere"),)
    assert len(flags(profile(number("q", value, "s"), gpus=1), table)) == flagged


def linked(*results: Result, counts: tuple[int, ...] = (18, 18), target: int | None = None) -> Profile:
    links = tuple(Link(at, target, "NVLink", "4", n, 25e9 * n) for at, n in enumerate(counts))
    found = profile(*results)
    return replace(found, machine=replace(found.machine, links=links))


def test_a_link_slower_than_its_equals_is_flagged_on_any_hardware() -> None:
    pairs = [pair(1e11, source) for source in (2, 3, 4)]
    (flag,) = flags(linked(pair(0.5e11), *pairs))
    assert (flag.at["source"], flag.expected, flag.source) == (0, 1e11, "the median of all pairs")
    assert flags(linked(pair(0.95e11), *pairs)) == ()


def test_a_gpu_that_lost_lines_to_the_switch_shows() -> None:
    pairs = [pair(1e11, source) for source in (2, 3, 4)]
    assert len(flags(linked(pair(0.5e11), *pairs, counts=(18, 9)))) == 1


def test_direct_links_differ_by_design_and_are_not_compared() -> None:
    pairs = [pair(1e11, source) for source in (2, 3, 4)]
    assert flags(linked(pair(0.5e11), *pairs, target=1)) == ()


def test_the_table_is_sound() -> None:
    for item in expected(machine(1)):
        assert item.better in ("more", "less")
        assert 0 < item.tolerance < 1
