"""Many GPUs, and several hosts: a chain of alike slabs, over a network or without one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from predict_problems import flat

from peergrid.bench.problems import radar
from peergrid.costs.machine import Line, Machine
from peergrid.costs.machines import machine_named
from peergrid.errors import UsageError
from peergrid.predict.scaling import HIDDEN, chains, hidden_from, is_chain, scaling, seconds_on
from peergrid.schedule import Options

H200 = machine_named("h200-x4")
OVERLAP = Options("overlap", depth=1)


def over(latency: float, bandwidth: float = 50e9) -> Machine:
    """Four hosts of two GPUs on a network."""
    return replace(H200, gpus=2, nodes=4, network=Line(latency, bandwidth))


def test_more_gpus_take_less_time_and_memory_each() -> None:
    points = scaling(flat(1 << 16, 4096), H200, OVERLAP, (1, 2, 4, 64))
    assert [point.gpus for point in points] == [1, 2, 4, 64]
    assert [point.memory for point in points] == sorted((point.memory for point in points), reverse=True)
    assert points[0].efficiency == 1
    assert points[2].seconds_per_step < points[1].seconds_per_step < points[0].seconds_per_step


def test_slow_networks_are_seen_however_few_the_hosts() -> None:
    problem = flat(1 << 14, 4096)
    few = replace(over(5e-3), nodes=2)
    assert is_chain(few, 4)
    assert seconds_on(problem, few, OVERLAP, 4)[0] > 5e-3
    assert seconds_on(problem, replace(few, network=Line(5e-6, 50e9)), OVERLAP, 4)[0] < 1e-3


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_an_exchange_takes_one_latency_whatever_its_messages(depth: int) -> None:
    """Several fields, both ways: all messages are under way together, once for so many steps."""
    problem, latency = radar(1024, 512, 100), 5e-3
    seconds = seconds_on(problem, over(latency), Options("overlap", depth=depth), 8)[0]
    assert seconds * depth == pytest.approx(latency, rel=0.1)


def test_the_fastest_depth_is_first_and_says_how_much_the_network_takes() -> None:
    problem = flat(1 << 14, 4096)
    near, far = (chains(problem, over(latency), OVERLAP, 8) for latency in (1e-6, 1e-3))
    for found in (near, far):
        times = [one.seconds_per_step for one in found]
        assert times == sorted(times)
        assert {one.options.depth for one in found} == {1, 2, 4, 8}
    assert near[0].hidden
    assert far[0].options.depth == 8
    assert far[0].slower > 2
    assert all(one.slower == 1 for one in chains(problem, H200, OVERLAP, 16))


def test_more_rows_hide_a_network() -> None:
    problem = flat(1 << 16, 4096)
    rows = {latency: hidden_from(problem, over(latency), OVERLAP) for latency in (5e-6, 1e-4, 1.0)}
    assert rows[1.0] is None
    assert rows[5e-6] is not None
    assert rows[1e-4] is not None
    assert rows[5e-6] < rows[1e-4]
    devices = (1 << 16) // rows[1e-4]
    assert chains(problem, over(1e-4), OVERLAP, devices, (1,))[0].slower <= HIDDEN


def test_kernels_that_exchange_by_themselves_do_so_within_a_host() -> None:
    found = chains(flat(1 << 14, 4096), over(1e-6), Options("persistent", depth=8), 8)
    assert {one.options.strategy for one in found} == {"overlap"}


@pytest.mark.parametrize(("devices", "depths", "most"), [(1024, (), 250), (100, (4,), 62)])
def test_slabs_too_thin_for_their_halos_are_refused(devices: int, depths: tuple[int, ...], most: int) -> None:
    with pytest.raises(UsageError, match=rf"^Slabs are expected to have 4 rows .*: use at most {most} GPUs\.$"):
        chains(flat(1000, 64), H200, OVERLAP, devices, depths)
