"""The promise: the same bits on any number of devices, under any strategy, depth, order, split and kernel."""

from __future__ import annotations

import numpy as np
import pytest
from executions import STEPS, expected
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_problems import PROBLEMS

from peergrid import Options, Simulation
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.schedule.strategies import STRATEGIES

SPLITS: dict[int, list[Index]] = {
    1: [(1,), (2,), (3,), (7,)],
    2: [(1, 1), (2, 1), (1, 3), (2, 2), (7, 1)],
    3: [(1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 1, 3)],
}
DEPTHS = ((1, 1), (2, 2), (3, 2), (5, 5))  # with the steps of a pass


def check(name: str, split: Index | Partition, options: Options, kernel: str) -> None:
    problem = PROBLEMS[name]()
    count = split.devices if isinstance(split, Partition) else int(np.prod(split))
    with Simulation(problem, STEPS, devices=f"cpu:{count}", split=split, options=options, kernel=kernel) as simulation:
        simulation.run(4)  # a run in parts is the same run
        simulation.run(STEPS - 4)
        fields, traces = expected(name)
        for field in problem.state:
            assert simulation.gather(field).tobytes() == fields[field], field
        recorded = simulation.traces()
        assert b"".join(recorded[r.name].tobytes() for r in problem.receivers) == traces


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_strategy_split_and_depth(name: str, strategy: str) -> None:
    """Every split with every other depth; with the others under the next strategy."""
    axes, turn = PROBLEMS[name]().grid.ndim, list(STRATEGIES).index(strategy)
    for place, split in enumerate(SPLITS[axes]):
        for depth, block in DEPTHS[(place + turn) % 2 :: 2]:
            check(name, split, Options(strategy, depth, block), "reference")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PROBLEMS)), st.sampled_from(sorted(STRATEGIES)), st.integers(1, 4), st.data())
def test_cuts_anywhere(name: str, strategy: str, depth: int, data: st.DataObject) -> None:
    grid = PROBLEMS[name]().grid
    inner = [
        data.draw(st.sets(st.integers(1, n - 1), max_size=2 if axis == 0 else 1)) for axis, n in enumerate(grid.shape)
    ]
    cuts = tuple((0, *sorted(places), n) for places, n in zip(inner, grid.shape, strict=True))
    kernel = data.draw(st.sampled_from(("reference", "compiled")))
    check(name, Partition(grid, tuple(len(c) - 1 for c in cuts), cuts), Options(strategy, depth), kernel)


@pytest.mark.parametrize("order", ["left-right", "pairwise", "all"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_exchange_order(strategy: str, separate: bool, order: str) -> None:
    for name in ("yee", "heat_periodic"):
        check(name, (3, 1), Options(strategy, 2, order=order, separate=separate), "reference")
        check(name, (2, 2), Options(strategy, 2, order=order, separate=separate), "reference")


@pytest.mark.parametrize("name", PROBLEMS)
def test_compiled_kernels_find_the_same_bits(name: str) -> None:
    axes = PROBLEMS[name]().grid.ndim
    for split in SPLITS[axes]:
        for strategy, depth, block in (("async", 1, 1), ("overlap", 4, 4), ("peer", 3, 2)):
            check(name, split, Options(strategy, depth, block), "compiled")
