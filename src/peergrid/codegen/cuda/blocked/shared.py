"""What thread blocks share of a multiprocessor: memory, as kernels were measured with and where a GPU has less of it;
registers.
"""

from __future__ import annotations

MOST_BYTES = 160 << 10  # of a thread block: what A100s and later ones of their kind give
REGISTERS = 1 << 16  # of a multiprocessor
MOST_SHARED, RESERVED = 228 << 10, 1 << 10  # bytes of a multiprocessor, and of it for each block


def multiprocessor(room: int) -> int:
    """Bytes of a multiprocessor whose thread blocks can have `room`: on smaller GPUs one block may have them all."""
    return MOST_SHARED if room >= MOST_BYTES else room + RESERVED
