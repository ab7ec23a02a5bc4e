"""GPUs of several ranks, for which the host stands: by address, or by messages, the bits of one device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from host_driver import COMPILER

APP = Path(__file__).with_name("gpu_ranks_app.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
FOLDERS = (APP.parents[3] / "src", APP.parents[1], APP.parent, APP.parents[2] / "codegen" / "cuda")
pytestmark = [
    pytest.mark.skipif(not MPIEXEC.exists(), reason="no MPI beside this Python: pip install mpi4py mpich"),
    pytest.mark.skipif(not COMPILER, reason="no C++ compiler: install g++"),
]
MESSAGES = "halos go between ranks as messages through host memory"
Case = tuple[str, str, int, int, str]


def notes(ranks: int, cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What runs of these problems, strategies, depths, devices of each rank and routes say of themselves."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, FOLDERS)), "OPENBLAS_NUM_THREADS": "1"}
    line = [str(MPIEXEC), "-n", str(ranks), sys.executable, str(APP), json.dumps(cases)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    assert len(found) == len(cases)
    return found


def test_neighbours_that_address_each_other_need_no_messages() -> None:
    strategies = ("async", "overlap", "graph", "peer", "persistent")
    cases: list[Case] = [("heat_fixed", strategy, 1, 1, "address") for strategy in strategies]
    cases += [("heat_cube", "overlap", 2, 1, "address"), ("yee", "persistent", 2, 1, "address")]
    assert notes(2, cases) == [""] * 7


def test_hosts_that_wait_are_replaced_by_messages() -> None:
    cases: list[Case] = [("yee", "serial", 2, 1, "address"), ("yee", "threads", 1, 1, "address")]
    assert notes(2, cases) == [MESSAGES] * 2


@pytest.mark.parametrize(("ranks", "devices"), [(3, 1), (2, 2)])
def test_messages_leave_the_bits_of_one_device(ranks: int, devices: int) -> None:
    names = ("heat_periodic", "radius_four", "string")
    cases: list[Case] = [(name, "overlap", depth, devices, "mpi") for name in names for depth in (1, 2)]
    assert notes(ranks, [*cases, ("yee", "graph", 1, devices, "mpi")])[:-1] == [MESSAGES] * 6


def test_messages_from_gpu_memory_leave_the_bits_of_one_device() -> None:
    cases: list[Case] = [("heat_periodic", "overlap", 2, 1, "mpi-direct"), ("yee", "async", 1, 1, "mpi-direct")]
    assert notes(2, cases) == ["", ""]


def test_exchanges_between_gpus_are_timed_by_each_way_that_there_is() -> None:
    cases = [("exchanges", True, True), ("exchanges", False, False)]
    assert notes(2, cases) == [[64, 4096, 6], [64, 4096, 2]]


@pytest.mark.parametrize("ranks", [2, 3])
def test_groups_of_calls_in_queues_leave_the_bits_of_one_device(ranks: int) -> None:
    """A ring of two has the same neighbour at both ends."""
    cases: list[Case] = [("heat_periodic", "overlap", 2, 1, "nccl"), ("yee", "graph", 1, 1, "nccl")]
    assert notes(ranks, [*cases, ("heat_cube", "async", 2, 1, "nccl"), ("yee", "peer", 1, 1, "nccl")]) == [""] * 4


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_that_kernels_put_leave_the_bits_of_one_device(ranks: int) -> None:
    """Halos of one run and of many, in queues and graphs, alone and beside an interior."""
    cases: list[Case] = [("heat_periodic", "overlap", 2, 1, "nvshmem"), ("yee", "graph", 1, 1, "nvshmem")]
    assert notes(ranks, [*cases, ("heat_cube", "async", 2, 1, "nvshmem"), ("yee", "peer", 1, 1, "nvshmem")]) == [""] * 4


def test_kernels_of_their_own_leave_the_bits_of_one_device() -> None:
    """Everything that a rank has to every other, by address, or through the memory of hosts or GPUs and MPI."""
    cases = [("own", kernel, route) for kernel in ("half steps", "products") for route in ("address", "mpi", "direct")]
    for found, wanted in notes(3, cases):
        assert found == wanted
