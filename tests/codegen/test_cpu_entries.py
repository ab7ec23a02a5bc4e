"""Look-ups in vectors: tables in one vector, in several, and in memory, on processors that permute and on others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_problems import media
from test_cpu_kernel import DTYPES, check, in_tiles

from peergrid.codegen.cpu import entries, vectors
from peergrid.codegen.cpu.native import shifts_vectors
from peergrid.codegen.cpu.plan import code_of
from peergrid.grid import Dtype
from peergrid.runtime.cpu.kernel import CpuKernel


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of compiled code for all tests."""
    return tmp_path_factory.mktemp("compiled")


@settings(max_examples=40)
@given(
    count=st.integers(1, 70) | st.sampled_from([128, 129, 1000]),
    shape=st.tuples(st.integers(4, 7), st.integers(4, 7), st.integers(4, 40)),
    dtype=st.sampled_from(DTYPES),
    permuting=st.booleans(),
    chosen=st.booleans(),
    steps=st.integers(1, 2),
)
def test_tables_of_any_length(
    compiled: Path, count: int, shape: tuple[int, int, int], dtype: Dtype, permuting: bool, chosen: bool, steps: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vectors, "shifts_vectors", lambda: permuting and shifts_vectors())
        patched.setattr(entries, "CHOSEN", 8 * chosen)
        problem = media(shape, dtype=dtype, count=count)
        check(problem, CpuKernel(problem, compiled, in_tiles(problem, 64)), (1, 1, 1), steps)


@pytest.mark.parametrize(("count", "called"), [(16, "permvar"), (17, "vpermi2var"), (128, "vpermi2var"), (129, "")])
def test_short_tables_are_permuted(count: int, called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "shifts_vectors", lambda: True)
    text = code_of(media((4, 4, 4), count=count), 0, 0, by_planes=True).text
    assert ("call <16 x float> @llvm.x86.avx512" in text) == bool(called)
    assert f"call <16 x float> @llvm.x86.avx512.{called}" in text or not called
