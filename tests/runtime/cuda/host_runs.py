"""Runs of problems by executors of GPUs whose kernels are compiled for the host."""

from __future__ import annotations

from executions import STEPS, Found, carry_through
from host_driver import HostDriver

from peergrid import Options, Problem
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import layout


def carried_out(problem: Problem, split: Index, options: Options, driver: HostDriver) -> Found:
    """The fields and traces after `STEPS` steps; all memory is given back."""
    plan = layout(problem, Partition(problem.grid, split), options)
    executor = CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=driver, submission_threads=8)
    answer = carry_through(executor, options)
    executor.close()
    assert not driver.live
    return answer
