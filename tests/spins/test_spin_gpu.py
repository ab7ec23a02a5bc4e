"""Relaxations on the GPUs of this machine: the bits of virtual devices, by every exchange."""

from __future__ import annotations

import pytest

from peergrid import Options
from peergrid.runtime.devices import gpu_count
from peergrid.schedule.strategies import StrategyName
from peergrid.spins import Relaxation, random_graph
from peergrid.spins.gpus import Exchange, gpu_relaxation

GPUS = gpu_count()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="no CUDA device here")]


@pytest.mark.parametrize("exchange", ["store", "copy", "nccl"])
@pytest.mark.parametrize("count", [1, *([GPUS] if GPUS > 1 else [])])
def test_the_bits_are_those_of_virtual_devices(count: int, exchange: Exchange) -> None:
    graph = random_graph(count * 480 * 32, 3)
    with Relaxation(graph, 0.4, 11, "cpu:2") as wanted, gpu_relaxation(graph, 0.4, 11, count, exchange) as found:
        wanted.advance(9)
        found.advance(9)
        assert {found.sha256(gpu) for gpu in range(count)} == {wanted.sha256()}


@pytest.mark.parametrize("strategy", ["async", "graph", "overlap"])
def test_passes_on_gpus_leave_the_bits_of_virtual_devices(strategy: StrategyName) -> None:
    graph, seen = random_graph(GPUS * 480 * 32, 3), set[str]()
    for devices in ("cpu:2", "cuda:0,0", "cuda"):
        with Relaxation(graph, 0.4, 11, devices, Options(strategy)) as run:
            run.advance(9)
            seen.add(run.sha256())
    assert len(seen) == 1
