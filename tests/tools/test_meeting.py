"""The kernel with which `benchmarks/cuda/linked.py` measures meetings of all blocks."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from peergrid.codegen.nvrtc import compile_cubin

MEETING = Path(__file__).parents[2] / "benchmarks" / "cuda" / "meeting.py"


@pytest.mark.nvrtc
def test_it_compiles() -> None:
    pytest.importorskip("cuda.core")
    assert compile_cubin(runpy.run_path(str(MEETING))["BARRIER"], "sm_90")[:4] == b"\x7fELF"
