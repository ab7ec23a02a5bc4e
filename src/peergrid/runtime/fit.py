"""Checks that a run fits into memory, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from peergrid.errors import DoesNotFit
from peergrid.stencil import Problem

try:
    import resource
except ImportError:  # no Unix: there are no such limits
    resource = None  # type: ignore[assignment]

RESERVE = 0.9  # the share of free memory that a run may take


def free_memory(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that this process can still allocate: free memory within the limits of the process and of its container.

    group: folder of the process's control group, version 2.
    """
    return max(0, min([int(psutil.virtual_memory().available), *_left_of_limits(group)]))


def _left_of_limits(group: Path) -> Iterator[int]:
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - int(psutil.Process().memory_info().vms)
    try:
        given, used = int((group / "memory.max").read_text()), int((group / "memory.current").read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        yield given - used + int(counts["inactive_file"])  # which the system can free
    except (OSError, ValueError, KeyError):
        return  # no such group, or one without a limit


def check_host_memory(needed: int, cells: int) -> None:
    """Raise DoesNotFit if virtual devices would need more bytes than the host has free."""
    free = free_memory()
    if needed > RESERVE * free:
        affordable = int(cells * RESERVE * free / needed)
        raise DoesNotFit(
            f"The run needs {gibibytes(needed)} of memory and {gibibytes(free)} are free: use at most about "
            f"{rounded(affordable)} cells here, a coarser grid, or a machine with more memory."
        )


def check_records(problem: Problem, steps: int, norm: bool) -> None:
    """Raise DoesNotFit if the records of a whole run would not fit: of receivers, reductions, and the norm."""
    each = len(problem.receivers) * problem.itemsize + sum(8 / one.every for one in problem.reductions) + 8 * norm
    needed, free = int(each * steps), free_memory()
    if needed > RESERVE * free:
        raise DoesNotFit(
            f"The records of {_records(problem, norm)} over {steps:,} steps need {gibibytes(needed)} of "
            f"memory and {gibibytes(free)} are free: use at most about {rounded(steps * RESERVE * free / needed)} "
            "steps, or fewer records."
        )


def _records(problem: Problem, norm: bool) -> str:
    """The kinds of records of a run, in words."""
    counts = {"receivers": len(problem.receivers), "reductions": len(problem.reductions)}
    return " and ".join([*(f"{count} {name}" for name, count in counts.items() if count), *(["the norm"] * norm)])


def gathered_bytes(problem: Problem) -> int:
    """Bytes of all state fields in the host's memory, as a result has them."""
    return sum(problem.fields[name].box.size for name in problem.state) * problem.itemsize


def gibibytes(count: int) -> str:
    """Bytes in words, such as '2 GiB'."""
    unit, name = (2**30, "GiB") if count >= 2**30 else (2**20, "MiB")
    return f"{rounded(count / unit, 3)} {name}"


def rounded(value: float, digits: int = 2) -> str:
    """A number rounded to a few digits, with commas between thousands."""
    whole = float(f"{value:.{digits}g}")
    return f"{whole:,.0f}" if abs(whole) >= 10 ** (digits - 1) else f"{whole:g}"
