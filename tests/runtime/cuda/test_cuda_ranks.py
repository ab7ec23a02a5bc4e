"""GPUs of several ranks, for which the host stands: by address, or by messages, the bits of one device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
UNCAPTURED = "halos go between ranks as messages by MPI, which graphs do not hold: each call is issued"
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


def by_address() -> Iterator[tuple[Case, str]]:
    """Neighbours that address each other need no messages; hosts that wait are replaced by messages."""
    for strategy in ("async", "overlap", "graph", "peer", "persistent"):
        yield ("heat_fixed", strategy, 1, 1, "address"), ""
    yield ("heat_cube", "overlap", 2, 1, "address"), ""
    yield ("yee", "persistent", 2, 1, "address"), ""
    yield ("yee", "serial", 2, 1, "address"), MESSAGES
    yield ("yee", "threads", 1, 1, "address"), MESSAGES


def by_messages(devices: int) -> Iterator[tuple[Case, str]]:
    """Through the memory of hosts."""
    for name in ("heat_periodic", "radius_four", "string"):
        for depth in (1, 2):
            yield (name, "overlap", depth, devices, "mpi"), MESSAGES
    yield ("yee", "graph", 1, devices, "mpi"), UNCAPTURED


def by_queues(route: str) -> Iterator[tuple[Case, str]]:
    """Groups of calls, or messages that kernels put: halos of one run and of many, in queues and graphs, alone and
    beside an interior; a ring of two has the same neighbour at both ends.
    """
    for name, strategy, depth in (("heat_periodic", "overlap", 2), ("yee", "graph", 1), ("heat_cube", "async", 2)):
        yield (name, strategy, depth, 1, route), ""
    yield ("yee", "peer", 1, 1, route), ""


QUEUES = [*by_queues("nccl"), *by_queues("nvshmem")]
CASES = {2: [*by_address(), *by_messages(2), *QUEUES], 3: [*by_messages(1), *QUEUES]}


@pytest.mark.parametrize("ranks", CASES)
def test_every_route_leaves_the_bits_of_one_device(ranks: int) -> None:
    """All cases in one start of the ranks, which takes longer than most of them."""
    cases = [case for case, _ in CASES[ranks]]
    assert dict(zip(cases, notes(ranks, cases), strict=True)) == dict(CASES[ranks])


def test_messages_from_gpu_memory_leave_the_bits_of_one_device() -> None:
    cases: list[Case] = [("heat_periodic", "overlap", 2, 1, "mpi-direct"), ("yee", "async", 1, 1, "mpi-direct")]
    assert notes(2, cases) == ["", ""]


def test_exchanges_between_gpus_are_timed_by_each_way_that_there_is() -> None:
    cases = [("exchanges", True, True), ("exchanges", False, False)]
    assert notes(2, cases) == [[64, 4096, 6], [64, 4096, 2]]


def test_kernels_of_their_own_leave_the_bits_of_one_device() -> None:
    """Everything that a rank has to every other, by address, or through the memory of hosts or GPUs and MPI."""
    cases = [("own", kernel, route) for kernel in ("half steps", "products") for route in ("address", "mpi", "direct")]
    for found, wanted in notes(3, cases):
        assert found == wanted
