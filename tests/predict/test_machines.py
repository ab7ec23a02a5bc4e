"""Machines by name, from profiles, from data sheets."""

from __future__ import annotations

from pathlib import Path

import pytest

from peergrid.costs.machines import bundled, machine_named, nearest
from peergrid.errors import UsageError
from peergrid.predict.profiles import machine_at, machine_of

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize(("file", "name"), [("profile-h200-x2.json", "h200-x2"), ("profile-h200-x4.json", "h200-x4")])
def test_a_recorded_profile_gives_the_machine_of_its_name(file: str, name: str) -> None:
    found, known = machine_at(str(RESULTS / file)), machine_named(name)
    assert found.measured
    assert found.gpus == known.gpus
    assert found.memory == known.memory
    assert found.bandwidth == pytest.approx(known.bandwidth, rel=0.01)
    assert found.copy.bandwidth == pytest.approx(known.copy.bandwidth, rel=0.01)
    assert found.calls.launch == pytest.approx(known.calls.launch, rel=0.3)


def test_a_profile_without_gpus_is_refused() -> None:
    from peergrid.probe.profile import read

    profile = read(RESULTS / "profile-h200-x2.json")
    object.__setattr__(profile.machine, "gpus", ())
    with pytest.raises(UsageError, match="says nothing of GPUs"):
        machine_of(profile, "empty.json")


def test_machines_that_nobody_measured_say_so() -> None:
    assert {name for name, machine in bundled().items() if machine.measured} == {"h200-x2", "h200-x4", "h200-x8"}
    assert all("data sheet" in machine.source for machine in bundled().values() if not machine.measured)


def test_the_nearest_machine_is_one_of_the_same_gpu() -> None:
    assert nearest("NVIDIA H200", 3).name in {"h200-x2", "h200-x4"}
    assert nearest("NVIDIA A100-SXM4-80GB", 1).name == "a100-x8"
    assert nearest("NVIDIA GeForce of some kind", 1).name == "h200-x2"


def test_an_unknown_machine_is_an_error_that_names_those_known() -> None:
    with pytest.raises(UsageError, match="h200-x8"):
        machine_named("cray-1")
