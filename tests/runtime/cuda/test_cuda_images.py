"""Images on GPUs whose kernels are compiled for the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver

from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.errors import UsageError
from peergrid.images.formula import parse
from peergrid.images.gpus import KERNELS, Variant, on_gpus, source
from peergrid.images.table import Line, table

TYPES = [np.dtype(np.uint8), np.dtype(np.uint16)]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("formula", ["x / 3", "sqrt(x) * 16"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_pixels_are_those_of_the_table(dtype: np.dtype[Any], formula: str, variant: Variant) -> None:
    values = table(parse(formula), dtype)
    for size, ordinals in ((1, (0,)), (1003, (0, 1, 0)), (4097, (1, 0))):
        image = np.random.default_rng(size).integers(0, np.iinfo(dtype).max + 1, (1, size)).astype(dtype)
        driver = HostDriver()
        found, seconds = on_gpus(image, values, ordinals, variant, 2, driver)
        assert np.array_equal(found, values[image])
        assert len(seconds.kernels) == 2
        assert not driver.live


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_a_block_takes_more_pixels_than_it_has_loads_under_way() -> None:
    values = table(parse("sqrt(x) * 16"), TYPES[1])
    image = np.random.default_rng(1).integers(0, 1 << 16, (40_007,)).astype(TYPES[1])
    found, _ = on_gpus(image, values, (0,), "shared", driver=HostDriver(blocks=1))
    assert np.array_equal(found, values[image])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_the_kernel_that_is_taken_by_itself() -> None:
    """Shared memory for a table that the nearest cache does not hold, where there is as much and no line will do."""
    small = H200.with_block_shared(99 << 10)
    for gpu, formula, dtype, wanted in (
        (H200, "sqrt(x) * 16", TYPES[1], {"shared_pixels"}),
        (small, "sqrt(x) * 16", TYPES[1], {"shared_pixels", "packed_pixels"}),  # the first was asked for its room alone
        (H200, "sqrt(x) * 16", TYPES[0], {"packed_pixels"}),
        (H200, "x / 3", TYPES[1], {"packed_pixels"}),
    ):
        driver, values, image = HostDriver(gpu=gpu), table(parse(formula), dtype), np.arange(77).astype(dtype)
        found, _ = on_gpus(image, values, (0,), driver=driver)
        assert np.array_equal(found, values[image])
        assert driver.kernels == wanted


def test_a_gpu_without_as_much_shared_memory_is_refused() -> None:
    image, values = np.zeros(10, TYPES[1]), np.zeros(1 << 16, TYPES[1])
    with pytest.raises(UsageError, match="cannot have 131072 bytes of shared memory; use 'packed'"):
        on_gpus(image, values, (0,), "shared", driver=HostDriver(gpu=H200.with_block_shared(99 << 10)))


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_every_architecture_compiles(architecture: str) -> None:
    pytest.importorskip("cuda.core")
    for dtype in TYPES:
        for line in (None, Line(1, 2)):
            assert compile_cubin(source(dtype, line), architecture)[:4] == b"\x7fELF"
