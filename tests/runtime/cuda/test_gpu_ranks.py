"""Two GPUs as two ranks: by every route between them the bits of one device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from peergrid.runtime.devices import gpu_count

APP = Path(__file__).with_name("gpu_routes_app.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
FOLDERS = (APP.parents[3] / "src", APP.parents[1], APP.parent)
PACKAGES = {"nccl": "nccl", "nvshmem": "nvshmem"}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu_count() < 2, reason="no two CUDA devices here"),
    pytest.mark.skipif(not MPIEXEC.exists(), reason="no MPI beside this Python: pip install mpi4py mpich"),
]


@pytest.mark.parametrize("route", ["address", "mpi", "nccl", "nvshmem"])
def test_two_gpus_as_ranks_leave_the_bits_of_one_device(route: str) -> None:
    if route in PACKAGES and find_spec(PACKAGES[route]) is None:
        pytest.skip(f"no {route}: pip install '.[{route}]'")
    paths = [*map(str, FOLDERS), os.environ.get("PYTHONPATH", "")]
    line = [str(MPIEXEC), "-n", "2", sys.executable, str(APP), route]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
