"""Products on the GPUs of this machine: the bits of virtual devices, for both kernels and every route."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from peergrid import Options
from peergrid.runtime.devices import gpu_count
from peergrid.sparse import CsrMatrix, Products, SlicedMatrix

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
