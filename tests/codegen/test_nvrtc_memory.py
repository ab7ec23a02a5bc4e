"""A compiler without memory is no fault of the text that it was given."""

from __future__ import annotations

import io

import pytest

from peergrid.codegen import nvrtc
from peergrid.errors import DoesNotFit


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("error", "log"),
    [
        (MemoryError(), ""),
        (RuntimeError("NVRTC_ERROR_COMPILATION"), "default_program(906): catastrophic error: out of memory"),
        (RuntimeError("NVRTC_ERROR_COMPILATION"), "ptxas fatal   : Memory allocation failure"),
    ],
)
def test_too_little_memory_is_said(error: Exception, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")

    def fail(program: object, lines: io.StringIO, folder: object) -> None:
        lines.write(log)
        raise error

    monkeypatch.setattr(nvrtc, "_compile", fail)
    with pytest.raises(DoesNotFit, match="too little memory"):
        nvrtc.compile_cubin('extern "C" __global__ void nothing() {}', "sm_90")
