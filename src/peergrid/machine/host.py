"""The host side: packages, cores, caches, NUMA nodes and memory, from /sys, /proc and psutil."""

from __future__ import annotations

import os
import platform
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil

from peergrid.machine.model import Cache, Cpu, NumaNode

SYSTEM = Path("/sys/devices/system")
SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu(root: Path = SYSTEM, cpuinfo: Path = Path("/proc/cpuinfo")) -> Cpu:
    """Packages, cores, threads and caches; on systems without /sys the counts of psutil."""
    folders = _cpu_folders(root)
    threads = len(folders) or psutil.cpu_count() or 1
    packages = len({read(at / "topology/physical_package_id", "0") for at in folders}) or 1
    cores = len({read(at / "topology/core_cpus_list", at.name) for at in folders})
    return Cpu(
        model=_model(cpuinfo),
        architecture=platform.machine(),
        packages=packages,
        cores=cores or psutil.cpu_count(logical=False) or threads,
        threads=threads,
        usable=usable_cpus(),
        caches=_caches(folders),
    )


def usable_cpus() -> tuple[int, ...]:
    """The logical CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def memory() -> int:
    """Bytes of main memory as the system reports them now (some virtual machines grow it later)."""
    return int(psutil.virtual_memory().total)


def nodes(root: Path = SYSTEM) -> tuple[NumaNode, ...]:
    """The NUMA nodes; a system that shows none counts as one node. A single node has all memory there is."""
    found = [_node(at) for at in sorted((root / "node").glob("node[0-9]*"), key=lambda at: int(at.name[4:]))]
    if len(found) > 1:
        return tuple(found)
    node = found[0] if found else NumaNode(0, usable_cpus(), 0, (10,))
    return (replace(node, memory=memory()),)  # a virtual machine that grows may report less for its node


def cpu_list(text: str) -> tuple[int, ...]:
    """The kernel's list notation, '0-2,5' → (0, 1, 2, 5)."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def as_list(cpus: tuple[int, ...]) -> str:
    """The reverse of `cpu_list`: (0, 1, 2, 5) → '0-2,5'."""
    runs: list[list[int]] = []
    for index in sorted(cpus):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read(path: Path, default: str = "") -> str:
    """The stripped text of a small kernel file, or `default` where it is absent or refused."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return default


def _cpu_folders(root: Path) -> list[Path]:
    return sorted((root / "cpu").glob("cpu[0-9]*"), key=lambda at: int(at.name[3:]))


def _model(cpuinfo: Path) -> str:
    for line in read(cpuinfo).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model"):
            return " ".join(value.split())
    return platform.processor() or platform.machine()


def _caches(folders: list[Path]) -> tuple[Cache, ...]:
    """One entry per level and kind; caches that list the same threads are one instance."""
    seen = {_cache_key(at) for folder in folders for at in sorted((folder / "cache").glob("index[0-9]*"))}
    counts = Counter((level, kind, size, line, len(cpu_list(who))) for level, kind, size, line, who in seen)
    return tuple(
        Cache(level, kind, size, line, instances, shared)
        for (level, kind, size, line, shared), instances in sorted(counts.items())
    )


def _cache_key(at: Path) -> tuple[int, str, int, int, str]:
    level, line = int(read(at / "level", "0")), int(read(at / "coherency_line_size", "0"))
    return level, read(at / "type"), _bytes(read(at / "size", "0")), line, read(at / "shared_cpu_list")


def _bytes(text: str) -> int:
    return int(text[:-1]) * SUFFIX[text[-1]] if text[-1:] in SUFFIX else int(text or 0)


def _node(at: Path) -> NumaNode:
    total = [line for line in read(at / "meminfo").splitlines() if "MemTotal" in line]
    size = int(total[0].split()[-2]) * 1024 if total else 0
    distances = tuple(int(value) for value in read(at / "distance", "10").split())
    return NumaNode(int(at.name[4:]), cpu_list(read(at / "cpulist")), size, distances)
