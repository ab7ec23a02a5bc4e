"""A machine of three GPUs that only pretends."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from peergrid.machine import nvml
from peergrid.machine.host import usable_cpus
from peergrid.probe.cuda import addressing, host_side, independent, launch


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A `PretendDriver` in whose place experiments find what they call beside it; skipped without CUDA's bindings."""
    pytest.importorskip("cuda.core")
    from pretend_calls import Library, entries
    from pretend_driver import PretendDriver, PretendNvml

    found = entries()
    monkeypatch.setattr(launch, "entries", lambda: found)
    monkeypatch.setattr(host_side, "entries", lambda: found)
    monkeypatch.setattr(launch, "handle", lambda value: 1)
    monkeypatch.setattr(host_side, "words", lambda handles: np.ones(len(handles), np.uint64))
    monkeypatch.setattr(host_side, "cores", lambda: usable_cpus() * 3)
    monkeypatch.setattr(independent, "entries", lambda: found)
    monkeypatch.setattr(independent, "words", lambda handles: np.ones(len(handles), np.uint64))
    monkeypatch.setattr(independent, "cores", lambda: usable_cpus() * 3)
    driver = PretendDriver(3)
    monkeypatch.setattr(addressing, "library", lambda: Library(driver))
    monkeypatch.setattr(nvml, "session", lambda: nullcontext((PretendNvml(driver), None)))
    return driver
