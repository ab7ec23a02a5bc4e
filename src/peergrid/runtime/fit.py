"""Does it fit: the bytes that a layout needs against what is free, before anything is allocated."""

from __future__ import annotations

import psutil

from peergrid.errors import DoesNotFit

RESERVE = 0.9  # the share of free memory that a run may take


def check_host_memory(needed: int, cells: int) -> None:
    """Raise DoesNotFit where virtual devices would need more bytes than the host has free."""
    free = int(psutil.virtual_memory().available)
    if needed > RESERVE * free:
        fitting = int(cells * RESERVE * free / needed)
        raise DoesNotFit(
            f"The run needs {gibibytes(needed)} of memory and {gibibytes(free)} are free: use at most about "
            f"{rounded(fitting)} cells here, a coarser grid, or a machine with more memory."
        )


def gibibytes(count: int) -> str:
    """Bytes as people read them."""
    unit, name = (2**30, "GiB") if count >= 2**30 else (2**20, "MiB")
    return f"{rounded(count / unit, 3)} {name}"


def rounded(value: float, digits: int = 2) -> str:
    """A number to a few digits, written out with commas."""
    whole = float(f"{value:.{digits}g}")
    return f"{whole:,.0f}" if abs(whole) >= 10 ** (digits - 1) else f"{whole:g}"
