"""GPUs that give a thread block less shared memory than H200s, on a driver that runs on the host: the same bits."""

from __future__ import annotations

import pytest
from executions import carry_through, expected
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.errors import DeviceFault
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.memory.room import gpu_model
from peergrid.schedule import layout
from peergrid.schedule.strategies import StrategyName

RTX, T4, LITTLE = 99 << 10, 64 << 10, 20 << 10
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize("strategy", ["overlap", "peer", "persistent", "graph"])
@pytest.mark.parametrize(("name", "depth", "room"), [("yee", 4, LITTLE), ("heat_cube", 2, RTX), ("heat_cube", 3, T4)])
def test_same_bits(name: str, depth: int, room: int, strategy: StrategyName) -> None:
    """On so little that a step of Yee's scheme takes other tiles than on an H200; the rest of a run is shorter."""
    problem, driver = PROBLEMS[name](), HostDriver(gpu=H200.with_block_shared(room))
    options = Options(strategy, depth=depth)
    plan = layout(problem, Partition.over(problem.grid, 1), options)
    executor = CudaExecutor(plan, 11, (0,), driver=driver)
    assert carry_through(executor, options) == expected(name)
    executor.close()
    assert driver.kernels & {"stream2d", "edge2d", "edge2d_peer", "persistent2d", "stream3d"}
    assert 0 < driver.asked <= room


def test_what_thread_blocks_can_have() -> None:
    little = H200.with_block_shared(T4)
    assert gpu_model((0,), HostDriver(blocks=132)) == H200
    assert gpu_model((0, 1), HostDriver(gpu=little)).block_shared == T4

    class Silent(HostDriver):
        def model(self, ordinal: int) -> GpuModel:
            raise DeviceFault("no answer")

    assert gpu_model((0,), Silent(gpu=little)) == H200
