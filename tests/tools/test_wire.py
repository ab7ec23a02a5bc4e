"""The wire of `benchmarks/wire.py`, on systems that refuse to run it before all other processes."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "wire.py"


def test_a_wire_that_may_not_run_in_real_time_runs_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse, raising=False)
    assert runpy.run_path(str(SCRIPT))["hurried"]() is False
