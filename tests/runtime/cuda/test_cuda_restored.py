"""GPUs go on from the state of virtual devices, and these from theirs."""

from __future__ import annotations

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from restored_runs import STEPS, bits, onward, through, waves
from runtime_problems import PROBLEMS

import peergrid
from peergrid import Options, Simulation
from peergrid.runtime.cuda.executor import CudaExecutor

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
