"""The kernel with which `benchmarks/cuda/linked.py` measures a barrier of all blocks."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from peergrid.codegen.nvrtc import compile_cubin

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cuda" / "device_barrier.py"


@pytest.mark.nvrtc
def test_it_compiles() -> None:
    pytest.importorskip("cuda.core")
    assert compile_cubin(runpy.run_path(str(SCRIPT))["BARRIER"], "sm_90")[:4] == b"\x7fELF"
