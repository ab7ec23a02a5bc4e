"""A thread that issues work stays near its GPU, and is free again afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peergrid.runtime.cuda.submission import affinity

PCI = "0000:17:00.0"


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up /sys in which GPU 0 lies at PCI."""
    (tmp_path / PCI).mkdir()
    monkeypatch.setattr(affinity, "_address", lambda ordinal: PCI if ordinal == 0 else "none")
    return tmp_path


def say(devices: Path, cpus: str) -> None:
    (devices / PCI / "local_cpulist").write_text(cpus + "\n")


def test_the_list_of_the_kernel(devices: Path) -> None:
    say(devices, "0-2,5,8-9")
    assert affinity.near_cpus(0, devices) == {0, 1, 2, 5, 8, 9}
    say(devices, "")
    assert affinity.near_cpus(0, devices) == set()
    assert affinity.near_cpus(1, devices) == set()


def test_bound_inside_and_free_again_after_an_error(devices: Path) -> None:
    before = os.sched_getaffinity(0)
    one = min(before)
    say(devices, f"{one},4000")

    def issue() -> None:
        with affinity.bound_to(affinity.near_cpus(0, devices)) as bound:
            raise LookupError(bound, os.sched_getaffinity(0))

    with pytest.raises(LookupError) as error:
        issue()
    assert error.value.args == ((one,), {one})
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("cpus", ["4000", ""])
def test_a_thread_without_near_processors_stays_as_it_is(devices: Path, cpus: str) -> None:
    say(devices, cpus)
    before = os.sched_getaffinity(0)
    with affinity.bound_to(affinity.near_cpus(0, devices)) as bound:
        assert bound == ()
        assert os.sched_getaffinity(0) == before


def test_no_driver_is_no_fault() -> None:
    with affinity.bound_to(affinity.near_cpus(999)) as bound:
        assert bound == ()
