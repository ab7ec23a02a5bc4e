"""The speed of a host at launches, with a driver on the host."""

from __future__ import annotations

import pytest
from host_driver import COMPILER, HostDriver

from peergrid.errors import UsageError
from peergrid.runtime.cuda.calls import launch_seconds

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def test_a_launch_takes_some_time_and_nothing_is_left_behind() -> None:
    driver = HostDriver(gpus=2)
    assert 1e-9 < launch_seconds((0, 1), driver) < 1e-2
    assert not driver.live


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="2 CUDA devices"):
        launch_seconds((0, 2), HostDriver(gpus=2))
