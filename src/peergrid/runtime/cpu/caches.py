"""The caches of a core that a kernel can use."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

CORE = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL = 1 << 20  # bytes, where the system does not say
SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
BEHIND = 8  # times the second level: what tiles are cut for where the third level is nearly as fast
NEARLY = 0.5  # of the second level's rate
PASSES = 9  # over an array, of which the fastest counts


def second_level(root: Path = CORE) -> int:
    """Bytes of the second-level cache of one core."""
    return _size(root, 2) or USUAL


def update_rate(size: int) -> float:
    """Bytes per second, read and written, of updating an array in place from another, `size` bytes together."""
    changed, added = np.zeros(size // 8, np.float32), np.ones(size // 8, np.float32)
    seconds = []
    for _ in range(PASSES):
        began = time.perf_counter()
        np.add(changed, added, out=changed)
        seconds.append(time.perf_counter() - began)
    return 3 * changed.nbytes / min(seconds)


@lru_cache(maxsize=1)
def tile_cache(root: Path = CORE, rate: Callable[[int], float] = update_rate) -> int:
    """Bytes of the caches that 3D tiles are cut for: of the second level, or more where the third is nearly as fast.

    On some processors the third level updates an array at two thirds of the second level's rate, on others at a
    fifth. That is measured once, in some milliseconds, where the third level has room for the tiles of two cores.
    rate: bytes per second of updating arrays of so many bytes in place.
    """
    near = second_level(root)
    far = BEHIND * near
    if _size(root, 3) < 2 * far:
        return near
    return far if rate(far // 2) >= NEARLY * rate(near // 2) else near


def _size(root: Path, wanted: int) -> int:
    """Bytes of the cache of a level, 0 where the system does not say."""
    for index in sorted(root.glob("index[0-9]*")):
        try:
            level, size = (index / "level").read_text().strip(), (index / "size").read_text().strip()
        except OSError:
            continue
        if level == str(wanted) and size[:-1].isdigit() and size[-1] in SUFFIX:
            return int(size[:-1]) * SUFFIX[size[-1]]
    return 0
