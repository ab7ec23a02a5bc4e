"""What a run on GPUs tells its user, and what it leaves where it cannot begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import DeviceFault, Options, Simulation
from peergrid.runtime.cuda import executor
from peergrid.runtime.devices import Devices
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("peer", "'peer' fuses the halo exchange"),
        ("persistent", "'persistent' fuses the halo exchange"),
        ("graph", "of a CUDA graph cannot be timed one by one; the timeline"),
        ("overlap", ""),
    ],
)
def test_what_the_timeline_shows(
    strategy: StrategyName, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "CudaDriver", HostDriver)
    given = {"devices": Devices("cuda", (0, 1)), "options": Options(strategy, depth=2), "cache": tmp_path}
    with Simulation(PROBLEMS["heat_fixed"](), 12, **given) as run:
        run.run(4)
        assert not any("the unfused schedule" in note for note in run.notes)
        run.trace(4)
        apart = [note for note in run.notes if "the unfused schedule" in note]
        assert len(apart) == bool(said)
        assert all(said in note for note in apart)
        assert run.exposed_communication() is not None
        assert run.result().notes == run.notes


@pytest.mark.parametrize("good", range(6))
def test_a_run_whose_copies_fail_gives_everything_back(
    good: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies that fail: those of the fields, or those that test whether peers receive what is sent."""
    driver, upload, left = HostDriver(), HostDriver.upload, [good]
    monkeypatch.setattr(executor, "CudaDriver", lambda: driver)

    def fail(self: HostDriver, pointer: int, values: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise DeviceFault("The copy failed.")
        upload(self, pointer, values)

    monkeypatch.setattr(HostDriver, "upload", fail)
    with (
        pytest.raises(DeviceFault, match="The copy failed"),
        Simulation(
            PROBLEMS["heat_fixed"](), 4, devices=Devices("cuda", (0, 1)), options=Options(), cache=tmp_path
        ) as run,
    ):
        run.run(4)
    assert not driver.live
