"""The host side, read from a made-up /sys: two packages, two nodes, shared caches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.machine import host
from peergrid.machine.model import Cache


def put(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Four CPUs: one core each, packages {0, 1} and {2, 3}, an L3 per package, an L1d per core."""
    for cpu in range(4):
        at = tmp_path / f"cpu/cpu{cpu}"
        put(at / "topology/physical_package_id", cpu // 2)
        put(at / "topology/core_cpus_list", cpu)
        for index, level, kind, size, who in (
            (0, 1, "Data", "48K", str(cpu)),
            (3, 3, "Unified", "32M", "0-1" if cpu < 2 else "2-3"),
        ):
            cache = at / f"cache/index{index}"
            put(cache / "level", level)
            put(cache / "type", kind)
            put(cache / "size", size)
            put(cache / "coherency_line_size", 64)
            put(cache / "shared_cpu_list", who)
    for node in range(2):
        at = tmp_path / f"node/node{node}"
        put(at / "cpulist", "0-1" if node == 0 else "2-3")
        put(at / "meminfo", f"Node {node} MemTotal:       1048576 kB")
        put(at / "distance", "10 21" if node == 0 else "21 10")
    put(tmp_path / "cpuinfo", "processor : 0\nmodel name : Some   CPU @ 2 GHz")
    return tmp_path


def test_packages_cores_and_caches(system: Path) -> None:
    cpu = host.cpu(system, system / "cpuinfo")
    assert (cpu.model, cpu.packages, cpu.cores, cpu.threads) == ("Some CPU @ 2 GHz", 2, 4, 4)
    assert cpu.caches == (Cache(1, "Data", 48 << 10, 64, 4, 1), Cache(3, "Unified", 32 << 20, 64, 2, 2))


def test_nodes(system: Path) -> None:
    first, second = host.nodes(system)
    assert (first.cpus, first.memory, first.distances) == ((0, 1), 1 << 30, (10, 21))
    assert (second.index, second.cpus) == (1, (2, 3))


def test_a_single_node_has_all_memory(system: Path) -> None:
    shutil.rmtree(system / "node" / "node1")
    (found,) = host.nodes(system)
    assert (found.cpus, found.memory, found.distances) == ((0, 1), host.memory(), (10, 21))


def test_without_sys_the_process_still_has_cpus(tmp_path: Path) -> None:
    cpu = host.cpu(tmp_path, tmp_path / "none")
    assert cpu.threads >= 1
    assert cpu.cores >= 1
    assert cpu.caches == ()
    assert len(host.nodes(tmp_path)) == 1


@given(st.sets(st.integers(0, 300)))
def test_cpu_list_goes_both_ways(cpus: set[int]) -> None:
    ordered = tuple(sorted(cpus))
    assert host.cpu_list(host.as_list(ordered)) == ordered


def test_cpu_list_of_the_kernel() -> None:
    assert host.cpu_list("0-2,5\n") == (0, 1, 2, 5)
    assert host.as_list((0, 1, 2, 5)) == "0-2,5"
