"""GPUs go on from the state of virtual devices, and these from theirs."""

from __future__ import annotations

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from restored_runs import STEPS, bits, onward, through, waves
from runtime_problems import PROBLEMS

import peergrid
from peergrid import Box, Options, Simulation
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import layout

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize("name", ["waves", "heat_cube"])
def test_gpus_go_on_from_the_state_of_virtual_devices(name: str) -> None:
    """A simulation whose executor is that of GPUs, on a driver that runs on the host."""
    problem = waves() if name == "waves" else PROBLEMS[name]()
    undisturbed = peergrid.run(problem, STEPS, devices="cpu:1")
    state = through(problem, 6, devices="cpu:3")
    with Simulation(problem, STEPS, devices="cpu:2", options=Options("overlap", 2)) as simulation:
        simulation._executor.close()
        simulation._executor = CudaExecutor(simulation.layout, STEPS, (0, 1), driver=HostDriver(), timeout=60)
        load(simulation._executor)
        simulation.restore(state)
        simulation.run(9)
        again = simulation.state()
        simulation.run(STEPS - 15)
        assert bits(simulation.result()) == bits(undisturbed)
        simulation._executor.close()
    assert bits(onward(problem, again, devices="cpu:4")) == bits(undisturbed)


@pytest.mark.parametrize("name", ["heat_fixed", "heat_cube", "string"])
def test_a_box_of_a_field_is_downloaded(name: str) -> None:
    problem = PROBLEMS[name]()
    plan = layout(problem, Partition.over(problem.grid, 3), Options("serial"))
    executor = CudaExecutor(plan, STEPS, (0, 1, 2), driver=HostDriver(), timeout=60)
    load(executor)
    field = problem.state[0]
    whole, grid = executor.gather(field, 0), problem.grid.box
    boxes = [grid, Box.cell(grid.lo), Box.cell(tuple(n - 1 for n in grid.hi))]
    boxes.append(Box(tuple(n // 3 for n in grid.hi), tuple(n - n // 5 for n in grid.hi)))
    for box in boxes:
        assert np.array_equal(executor.gather(field, 0, box), whole[box.slices(grid.lo)])
    executor.close()
