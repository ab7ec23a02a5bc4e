"""GPUs go on from the state of virtual devices, and these from theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from restored_runs import STEPS, bits, onward, through, wave, waves
from runtime_problems import PROBLEMS

import peergrid
from peergrid import Box, Grid, Options, Problem, Simulation
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.executor import DeviceArray
from peergrid.schedule import layout
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize("name", ["waves", "heat_cube"])
def test_gpus_go_on_from_the_state_of_virtual_devices(name: str) -> None:
    problem = waves() if name == "waves" else PROBLEMS[name]()
    undisturbed = peergrid.run(problem, STEPS, devices="cpu:1")
    state = through(problem, 6, devices="cpu:3")
    with on_gpus(problem, 2) as simulation:
        simulation.restore(state)
        simulation.run(9)
        again = simulation.state()
        simulation.run(STEPS - 15)
        assert bits(simulation.result()) == bits(undisturbed)
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


@dataclass(frozen=True)
class OnHost:
    """An array of a GPU for NumPy: the driver of these tests has its memory on the host."""

    __array_interface__: Any


@pytest.mark.parametrize("name", ["waves", "heat_cube", "string"])
def test_fields_are_seen_in_the_memory_of_gpus(name: str) -> None:
    problem = waves() if name == "waves" else PROBLEMS[name]()
    with on_gpus(problem, 3) as simulation:
        for steps in (0, 4, 5):
            simulation.run(steps)
            for field in problem.state:
                whole = simulation.gather(field)
                for box, values in simulation.views(field):
                    assert isinstance(values, DeviceArray)
                    found = np.asarray(OnHost(dict(values.__cuda_array_interface__)))
                    assert np.array_equal(found, whole[box.slices(problem.fields[field].box.lo)])
                assert sum(box.size for box, _ in simulation.views(field)) == whole.size


@pytest.mark.parametrize("strategy", ["overlap", "peer"])
def test_a_wave_on_gpus_begins_with_two_fields(strategy: StrategyName) -> None:
    """They differ at an edge, which no update writes."""
    random = np.random.default_rng(2)
    grid = Grid((60, 40), ("fixed", "periodic"))
    u = grid.field("u", random.random((60, 40)), prev=random.random((60, 40)))
    problem = Problem.of(wave(u, grid.field("c", 0.2), grid.signal("pulse", [0.5]), k=0.5))
    with on_gpus(problem, 2, Options(strategy, 4)) as simulation:
        simulation.run(9)
        assert simulation.sha256() == peergrid.run(problem, 9, devices="cpu:1").sha256


@contextmanager
def on_gpus(problem: Problem, gpus: int, options: Options | None = None) -> Iterator[Simulation]:
    """A simulation whose executor is that of GPUs, on a driver that runs on the host."""
    arranged = {"devices": f"cpu:{gpus}", "options": options or Options("overlap", 2)}
    with Simulation(problem, STEPS, **arranged) as simulation:  # type: ignore[arg-type]
        simulation._executor.close()
        simulation._executor = CudaExecutor(
            simulation.layout, STEPS, tuple(range(gpus)), driver=HostDriver(), timeout=60
        )
        load(simulation._executor)
        yield simulation
        simulation._executor.close()
