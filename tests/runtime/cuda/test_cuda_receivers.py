"""Receivers between nodes on GPUs: many around every node, near the cut of two devices."""

from __future__ import annotations

import numpy as np
import pytest
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out

from peergrid import Options
from peergrid.models.wave import Medium, Propagator, Scheme
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize("strategy", ["overlap", "peer"])
def test_many_receivers_around_every_node(strategy: StrategyName) -> None:
    """Of tilted waves, whose derivatives are stored on both sides of the cut."""
    rough = np.random.default_rng(1).random((40, 20))
    waves = Propagator(
        Medium((40, 20), 10.0, 2000 + 500 * rough, epsilon=0.2, delta=0.1, tilt=rough), Scheme(4, layer=4)
    )
    line = np.stack([np.linspace(170, 215, 81), np.full(81, 93.0)], axis=1)
    problem, _ = waves.problem(line[:1], np.ones((1, 8)), line)
    driver = HostDriver()
    assert carried_out(problem, (2, 1), Options(strategy), driver) == expected(problem)
