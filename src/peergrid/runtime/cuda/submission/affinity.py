"""Bind the threads that issue work to the processors on the side of their GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PCI_DEVICES = Path("/sys/bus/pci/devices")


@contextmanager
def bound_to(cpus: Set[int]) -> Iterator[tuple[int, ...]]:
    """Keep the calling thread on some processors until the block ends.

    Yields the logical CPUs it is bound to: those among them that are its own. Where there are none, or all of its own
    are among them, the thread stays as it is and gets an empty tuple.
    """
    before = os.sched_getaffinity(0) if cpus and hasattr(os, "sched_setaffinity") else set[int]()
    wanted = before & cpus
    if not wanted or wanted == before:
        yield ()
        return
    os.sched_setaffinity(0, wanted)
    try:
        yield tuple(sorted(wanted))
    finally:
        os.sched_setaffinity(0, before)


def near_cpus(ordinal: int, devices: Path = PCI_DEVICES) -> frozenset[int]:
    """The logical CPUs that the kernel calls local to a GPU; none where it does not say."""
    try:
        text = (devices / _address(ordinal) / "local_cpulist").read_text(encoding="ascii").strip()
    except OSError:
        return frozenset()
    spans = [part.partition("-") for part in text.split(",") if part]
    return frozenset(cpu for first, _, last in spans for cpu in range(int(first), int(last or first) + 1))


@cache
def _address(ordinal: int) -> str:
    """The PCI address of a GPU in the kernel's form; a name that no device has where the driver shows no such GPU."""
    try:
        from cuda.bindings import driver

        code, raw = driver.cuDeviceGetPCIBusId(32, ordinal)
    except (ImportError, RuntimeError, OSError):
        return "none"
    return raw.split(b"\0")[0].decode().lower() if int(code) == 0 else "none"
