"""Comparing two profiles, and flagging what is clearly below its expected value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from probe_examples import machine, number, profile

from peergrid.machine import Link
from peergrid.probe.compare import Expected, compared, differences, expected, flags
from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import Profile


def pair(value: float, source: int = 0) -> Measurement:
    return number("peer_copy_bandwidth", value, source=source, target=1, route="copy engine", ways=1)


def test_noise_is_no_difference() -> None:
    assert differences(profile(pair(1.01e11)), profile(pair(1.00e11))) == ()


@pytest.mark.parametrize(("apart", "found"), [(1.5, 0), (2.5, 1)])
def test_the_noise_of_both_counts(apart: float, found: int) -> None:
    one, other = (Measurement("q", "s", {}, value, 0.0, 1.0, (value,)) for value in (10.0, 10.0 + apart))
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
    table = (Expected("NVIDIA H200", "q", {}, 1.0, "s", better, 0.5, "somewhere"),)
    assert len(flags(profile(number("q", value, "s"), gpus=1), table)) == flagged


def named(found: Profile, *names: str) -> Profile:
    """The same numbers of GPUs with other names."""
    gpus = tuple(replace(gpu, name=name) for gpu, name in zip(found.machine.gpus, names, strict=True))
    return replace(found, machine=replace(found.machine, gpus=gpus))


@pytest.mark.parametrize("name", ["NVIDIA GH200 480GB", "NVIDIA H200 NVL", "NVIDIA H100 PCIe"])
def test_a_name_that_only_holds_a_known_one_is_other_hardware(name: str) -> None:
    assert flags(named(profile(pair(1.0e11), gpus=1), name)) == ()


def test_each_gpu_of_a_mixed_machine_is_judged_by_its_own_values() -> None:
    table = (Expected("NVIDIA H200", "q", {}, 10.0, "B/s", "more", 0.1, "somewhere"),)
    measured = profile(number("q", 1.0, device=0), number("q", 1.0, device=1), gpus=2)
    both = named(measured, "NVIDIA H200", "NVIDIA H200 NVL")
    assert [flag.at for flag in flags(both, table)] == [{"device": 0}]


def test_copies_far_from_the_theoretical_rates_are_flagged_on_any_hardware() -> None:
    def of(share: float) -> list[Measurement]:
        return [
            number("device_copy_bandwidth", share * 4.8e12, device=1, route="copy engine"),
            number("host_link_bandwidth", share * 6.3e10, device=0, direction="to host", memory="pinned", bytes=64),
            number("host_link_bandwidth", 1e6, device=0, direction="to host", memory="pinned", bytes=1),
            number("peer_copy_bandwidth", share * 4.5e11, source=0, target=1, route="copy engine", ways=1),
        ]

    links = tuple(Link(at, None, "NVLink switch", "4", 18, 4.5e11) for at in range(2))
    good, bad = (named(profile(*of(share), gpus=2), "X 1", "X 1") for share in (0.8, 0.5))
    good, bad = (replace(one, machine=replace(one.machine, links=links)) for one in (good, bad))
    assert flags(good) == ()
    assert [flag.quantity for flag in flags(bad)] == [
        "host_link_bandwidth", "peer_copy_bandwidth", "device_copy_bandwidth",
    ]  # fmt: skip


def test_what_is_known_of_the_hardware_goes_before_theory() -> None:
    links = tuple(Link(at, None, "NVLink switch", "4", 18, 9e11) for at in range(2))
    known = profile(number("peer_copy_bandwidth", 3.9e11, source=0, target=1, route="copy engine", ways=1), gpus=2)
    assert flags(replace(known, machine=replace(known.machine, links=links))) == ()


def linked(*results: Measurement, counts: tuple[int, ...] = (18, 18), target: int | None = None) -> Profile:
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
    assert expected(machine(1))
    for item in expected(machine(1)):
        assert item.better in ("more", "less")
        assert 0 < item.tolerance < 1
