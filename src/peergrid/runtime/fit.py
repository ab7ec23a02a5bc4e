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
            f"{fitting:.2g} cells here, a coarser grid, or a machine with more memory."
        )


def gibibytes(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
