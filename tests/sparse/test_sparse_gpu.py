"""Products on the GPUs of this machine: the bits of virtual devices, for both kernels and every route."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from peergrid import Options
from peergrid.runtime.devices import gpu_count
from peergrid.sparse import CsrMatrix, Products, RangeProducts, SlicedMatrix

GPUS = gpu_count()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="no CUDA device here")]
SPECS = ["cuda:0", "cuda:0,0", *(["cuda"] if GPUS > 1 else [])]


@pytest.mark.parametrize("devices", SPECS)
@pytest.mark.parametrize("route", ["copy", "store", "host"])
@pytest.mark.parametrize("kind", [CsrMatrix, SlicedMatrix])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_have_the_bits_of_virtual_devices(devices: str, route: Any, kind: Any, dtype: str) -> None:
    random = np.random.default_rng(5)
    near = sparse.random_array((40_000, 40_000), density=2e-4, rng=random, format="csr")
    rows = CsrMatrix.of((near + sparse.eye_array(40_000, k=-7)).astype(dtype))
    vector, seen = random.standard_normal(rows.rows).astype(dtype), []
    for where in ("cpu:2", devices):
        matrix = rows if where.startswith("cpu") or kind is CsrMatrix else SlicedMatrix.of(rows)
        with Products(matrix, vector, where, Options("async", route=None if where == "cpu:2" else route)) as run:
            run.advance(5)
            seen.append(run.vector().tobytes())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("devices", ["cuda:0", *(["cuda"] if GPUS > 1 else [])])
@pytest.mark.parametrize("kind", [CsrMatrix, SlicedMatrix])
def test_one_range_of_addresses_leaves_the_same_bits(devices: str, kind: Any) -> None:
    """2 million numbers: some pages of each GPU."""
    chain = CsrMatrix.of(sparse.diags_array([0.25, 0.5, 0.25], offsets=[-1, 0, 700_000], shape=(2 << 20, 2 << 20)))
    vector, seen = np.random.default_rng(2).standard_normal(2 << 20), []
    matrix = chain if kind is CsrMatrix else SlicedMatrix.of(chain)
    with Products(chain, vector, "cpu:2") as wanted:
        wanted.advance(5)
        seen.append(wanted.vector().tobytes())
    with RangeProducts(matrix, vector, devices) as found:
        found.advance(5)
        seen.append(found.vector().tobytes())
    assert seen[0] == seen[1]


STRAY = """
import numpy as np
from scipy import sparse
from peergrid.errors import DeviceFault
from peergrid.sparse import CsrMatrix, RangeProducts
chain = CsrMatrix.of(sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(2 << 20, 2 << 20)))
try:
    with RangeProducts(chain, np.ones(2 << 20), "cuda:0,1", reach=(0, 0)) as run:
        run.advance(1)
except DeviceFault as error:
    print(error)
"""


@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
def test_a_stray_access_is_a_fault() -> None:
    """In a process of its own, which can do no more CUDA work afterwards."""
    done = subprocess.run([sys.executable, "-c", STRAY], capture_output=True, text=True, timeout=120, check=True)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
