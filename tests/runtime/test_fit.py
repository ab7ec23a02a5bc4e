"""What is free: within the limits of the machine, of the process and of its container."""

from __future__ import annotations

import resource
from pathlib import Path

import psutil
import pytest

from peergrid import DoesNotFit, Grid, Problem, Receiver, Simulation, stencil
from peergrid.runtime.fit import free_memory


@stencil
def halve(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.5 * u[0, 0]


def control_group(folder: Path, limit: str) -> Path:
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text("300\n")
    (folder / "memory.stat").write_text("anon 150\ninactive_file 100\n")
    return folder


def test_a_container_has_what_is_left_and_what_gives_way(tmp_path: Path) -> None:
    assert free_memory(control_group(tmp_path, "1000")) == 800


def test_a_container_over_its_limit_has_nothing(tmp_path: Path) -> None:
    assert free_memory(control_group(tmp_path, "100")) == 0


def test_without_a_limit_the_machine_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 5000}))
    assert free_memory(control_group(tmp_path, "max")) == 5000
    assert free_memory(tmp_path / "missing") == 5000


def test_the_limit_of_the_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (taken + 10**7, taken + 10**8))
    assert 0 <= free_memory(tmp_path) <= 10**7


def test_records_that_do_not_fit_are_refused() -> None:
    problem = Problem.of(halve(Grid((8, 8)).field("u")), [Receiver("r", "u", (1, 1))])
    with pytest.raises(DoesNotFit, match=r"The records of 1 receivers over 100,000,000,000,000 steps need 373,000 GiB"):
        Simulation(problem, 10**14, devices="cpu:1")
