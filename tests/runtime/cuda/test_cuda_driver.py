"""What the package takes for granted about the driver, checked against the installed bindings; no GPU needed."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
from runtime_problems import yee_with_absorber

from peergrid import Options
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.common.pitches import LINE
from peergrid.errors import DeviceFault, DoesNotFit
from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.runtime import cuda as ours
from peergrid.runtime.cuda.device.faults import KINDS, NAMES, STICKY, classify, error
from peergrid.runtime.cuda.lowering.transfer import Side, memcpy_2d, memcpy_3d, transfer
from peergrid.runtime.cuda.memory.blocks import GUARD, BlockLayout, block_layouts
from peergrid.schedule import layout

bindings = pytest.importorskip("cuda.bindings.driver")
FOLDER = Path(ours.__file__).parent


def test_every_name_exists() -> None:
    text = "\n".join(path.read_text() for path in FOLDER.rglob("*.py"))
    names = set(re.findall(r'"(cu[A-Z]\w+)"', text))
    assert len(names) > 30
    assert not [name for name in names if not hasattr(bindings, name)]


def test_names_of_faults_are_the_drivers_and_have_one_kind() -> None:
    named = [name for names in NAMES.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert not [name for name in {*named, *STICKY} if not hasattr(bindings.CUresult, f"CUDA_ERROR_{name}")]


def test_every_error_of_what_is_used_is_classified() -> None:
    """Of the driver's codes those are left out that belong to graphics, textures, profiling, or launches by kernels."""
    others = re.compile(
        "SUCCESS|PROFILER|MULTICAST|ARRAY|NOT_MAPPED|ALREADY_MAPPED|ACQUIRED|GRAPHICS|AFFINITY|DEVSIDE|TEXTURING|TENSOR"
        "|CDP|KEY_ROTATION|RECAPTURE"
    )
    names = (code.name.removeprefix("CUDA_ERROR_") for code in bindings.CUresult)
    assert not [name for name in names if name not in KINDS and not others.search(name)]


def test_faults_say_what_to_do() -> None:
    lost = error(700, "'Copy'")
    assert isinstance(lost, DeviceFault)
    assert str(lost).startswith("'Copy' failed with CUDA_ERROR_ILLEGAL_ADDRESS (launch failure): a kernel failed;")
    assert str(lost).endswith("This process can do no more CUDA work: start it again.")
    assert isinstance(error(2, "cuMemAlloc"), DoesNotFit)
    assert classify(12345).kind == "unknown"


def words_of(struct: object, count: int) -> np.ndarray:
    return np.array((ctypes.c_int64 * count).from_address(struct.getPtr()))  # type: ignore[attr-defined]


def test_a_2d_copy_is_described_as_the_driver_reads_it() -> None:
    wanted = bindings.CUDA_MEMCPY2D()
    wanted.srcMemoryType = wanted.dstMemoryType = bindings.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    wanted.srcDevice, wanted.srcPitch, wanted.dstDevice, wanted.dstPitch = 4096, 512, 8192, 640
    wanted.WidthInBytes, wanted.Height = 40, 7
    assert (memcpy_2d(Side(4096, (512,)), Side(8192, (640,)), (7,), 40) == words_of(wanted, 16)).all()


def test_a_3d_copy_is_described_as_the_driver_reads_it() -> None:
    wanted = bindings.CUDA_MEMCPY3D()
    wanted.srcMemoryType = wanted.dstMemoryType = bindings.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    wanted.srcDevice, wanted.srcPitch, wanted.srcHeight = 4096, 512, 9
    wanted.dstDevice, wanted.dstPitch, wanted.dstHeight = 8192, 640, 11
    wanted.WidthInBytes, wanted.Height, wanted.Depth = 40, 7, 3
    found = memcpy_3d(Side(4096, (9 * 512, 512)), Side(8192, (11 * 640, 640)), (3, 7), 40)
    assert (found == words_of(wanted, 25)).all()


def block(lo: tuple[int, ...], hi: tuple[int, ...]) -> BlockLayout:
    return BlockLayout(Grid((100,) * len(lo)).field("u"), Box(lo, hi), 4)


def test_columns_are_aligned_by_their_global_index() -> None:
    for lo in ((-3, -5), (7, 31), (0, 64)):
        found = block(lo, (lo[0] + 9, lo[1] + 40))
        assert (found.index((lo[0], 32)) - GUARD) % LINE == 0
        assert found.pitches[0] % LINE == 0
        assert found.index(lo) >= GUARD
        assert found.index((lo[0] + 8, lo[1] + 39)) < found.values - GUARD


def test_whole_rows_travel_as_one_run() -> None:
    one, two = block((0, 0), (10, 50)), block((8, 0), (20, 50))
    moved = transfer(one, two, (Box((8, 0), (10, 50)), Box((8, 0), (10, 50))), (0, 0))
    assert moved.counts == ()
    assert moved.run == (64 + 50) * 4
    part = transfer(one, two, (Box((8, 1), (10, 50)), Box((8, 1), (10, 50))), (0, 0))
    assert (part.counts, part.run) == ((2,), 49 * 4)


@pytest.mark.parametrize("depth", [2, 8])
def test_passes_of_several_steps_read_within_the_blocks(depth: int) -> None:
    """Interior tiles load as many rows of every field as the farthest-reaching one needs, coefficients included."""
    problem = yee_with_absorber((120, 2000))
    plan = layout(problem, Partition(problem.grid, (2, 1)), Options("serial", depth=depth))
    kernel = pass_kernel(problem, depth)
    assert kernel is not None
    above, below = row_reach(problem, depth)
    seen = 0
    for device in range(plan.devices):
        blocks = block_layouts(plan, device)
        plain = [one for one in kernel.launches(plan.partition.owned(device), 64) if one.program is kernel.interior]
        for launch in plain:
            for version in kernel.stream.levels.inputs:
                block = blocks[version.field]
                lo, hi = launch.regions["lo"][:, 0].min(), launch.regions["hi"][:, 0].max()
                if block.field.full:
                    seen += 1
                    assert block.index((int(lo) - above, 0)) >= 0
                    assert block.index((int(hi) + below - 1, 1999)) < block.values
    assert seen == 2 * 4  # Ez, Hx, Hy and ca on both devices
