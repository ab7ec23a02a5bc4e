"""Random numbers by counter: Philox-4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC11. The same counter and key give the same words on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.arguments import brief, is_whole
from peergrid.errors import UsageError

Words = np.ndarray[Any, np.dtype[np.uint32]]

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)


def check_seed(seed: object) -> None:
    """Raise UsageError for a seed that is no whole number of 64 bits."""
    if not is_whole(seed) or not 0 <= seed < 1 << 64:  # type: ignore[operator]
        raise UsageError(f"A seed is a whole number from 0 to 2^64 - 1, got {brief(seed)}.")


def philox(counter: tuple[Words, int, int, int], seed: int) -> tuple[Words, Words, Words, Words]:
    """Four random words for each value of the counter's first word; seed: the key, 64 bits."""
    first = counter[0].astype(np.uint64)
    a, b, c, d = first, *(np.full_like(first, word) for word in counter[1:])
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(ROUNDS):
        one, two = (np.uint64(m) * x for m, x in zip(MULTIPLIERS, (a, c), strict=True))
        a, b, c, d = (
            (two >> HIGH) ^ b ^ np.uint64(keys[0]),
            two & LOW,
            (one >> HIGH) ^ d ^ np.uint64(keys[1]),
            one & LOW,
        )
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, WEYL, strict=True)]
    return a.astype(np.uint32), b.astype(np.uint32), c.astype(np.uint32), d.astype(np.uint32)
