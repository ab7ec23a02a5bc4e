"""The folder of compiled sources: the texts of a run's kernels, each in a file that the compiler was told of."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options, Simulation
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.errors import UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.sources import written
from peergrid.schedule import layout, one_iteration

KERNEL = (
    'extern "C" __global__ void __launch_bounds__(32) twice(const __grid_constant__ int n, int* p) { *p = 2 * n; }\n'
)


class Telling(HostDriver):
    """Keeps which file each text was said to lie in."""

    def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None = None) -> bytes:
        assert file is not None
        assert file.read_text() == source
        return super().compile(source, architecture, cache)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_all_that_a_run_compiles_is_kept(tmp_path: Path) -> None:
    problem, options = PROBLEMS["heat_fixed"](), Options("overlap", 2)
    driver = Telling()
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    executor = CudaExecutor(plan, 4, (0, 1), driver=driver, sources=tmp_path / "new")
    executor.prepare(one_iteration(plan, options))
    executor.close()
    assert driver.texts
    assert {path.read_text() for path in (tmp_path / "new").iterdir()} == set(driver.texts)


def test_files_are_called_after_kernels(tmp_path: Path) -> None:
    path = written(tmp_path, KERNEL)
    assert path.name.startswith("twice-")
    assert path.suffix == ".cu"
    assert written(tmp_path, KERNEL) == path
    assert written(tmp_path, KERNEL + "\n") != path


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot be kept in .*file"):
        written(tmp_path / "file", KERNEL)


def test_virtual_devices_have_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for GPUs, not for cpu:2"):
        Simulation(PROBLEMS["heat_fixed"](), 2, devices="cpu:2", options=Options("serial"), sources=tmp_path)


@pytest.mark.nvrtc
def test_profilers_find_the_lines(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    path = written(tmp_path, KERNEL)
    code = compile_cubin(KERNEL, "sm_90", file=path)
    assert str(tmp_path).encode() in code
    assert path.name.encode() in code
    assert b".debug_line" in code
    assert b".debug_line" not in compile_cubin(KERNEL, "sm_90")
