"""A timeline of kernels that exchange by themselves says what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options, Simulation
from peergrid.runtime.cuda import executor
from peergrid.runtime.devices import Devices
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize(("strategy", "apart"), [("peer", True), ("persistent", True), ("overlap", False)])
def test_what_the_timeline_shows(
    strategy: StrategyName, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "CudaDriver", HostDriver)
    given = {"devices": Devices("cuda", (0, 1)), "options": Options(strategy, depth=2), "cache": tmp_path}
    with Simulation(PROBLEMS["heat_fixed"](), 12, **given) as run:
        run.run(4)
        assert not any("one by one" in note for note in run.notes)
        run.trace(4)
        assert any(f"'{strategy}' exchange by themselves" in note for note in run.notes) == apart
        assert run.exposed_communication() is not None
