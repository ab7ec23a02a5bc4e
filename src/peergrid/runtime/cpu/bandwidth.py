"""The bandwidth of this machine's memory, from a copy by as many threads as compute."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

LARGE = 192 << 20  # bytes of an array that exceeds every cache
SMALL = 8 << 20  # the least bytes for which threads are worth their start


def copy_bandwidth(threads: int, moved: int = 2 * LARGE, samples: int = 3) -> float:
    """Bytes per second, read plus written, of copying one array to another; the median of some samples.

    moved: bytes, read plus written, of the work to compare with; the copy moves as many, within 16 to 384 MiB.
    """
    source = np.ones(min(max(moved // 2, SMALL), LARGE) // 4, dtype=np.float32)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))

    with ThreadPoolExecutor(threads) as pool:

        def sample() -> float:
            started = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(*pair), parts))
            return time.perf_counter() - started

        sample()  # first touch
        return 2 * source.nbytes / statistics.median(sample() for _ in range(samples))
