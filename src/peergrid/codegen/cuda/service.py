"""The small kernels beside the computing ones: halos stored into a peer's memory, flags, and clocks."""

from __future__ import annotations

import numpy as np

from peergrid.codegen.cuda.skeletons import include

COPY_BOX = np.dtype(
    [
        ("source", "<u8"),
        ("target", "<u8"),
        ("source_pitch", "<i8", 2),
        ("target_pitch", "<i8", 2),
        ("shape", "<i4", 3),
        ("first", "<i4"),
    ]
)
"""A box to copy: addresses of its first value on both sides, pitches in values, extent, first thread block."""

STORES = np.dtype([("boxes", "<u8"), ("count", "<i8")])
SIGNAL = np.dtype(
    [("flag", "<u8"), ("value", "<i8"), ("timeout", "<i8"), ("fault_log", "<u8"), ("op", "<i8"), ("record", "<i8")]
)
"""A flag to raise or await: its address and value; nanoseconds until waiting ends; the fault log, the operation's
number, and the first word of the device's record in the log."""

SEARCH = np.dtype([("values", "<u8"), ("pitch", "<i8", 2), ("shape", "<i4", 3), ("spare", "<i4"), ("found", "<u8")])
"""A box to search: the address of its first value, pitches, extent; where the smallest index found is written."""

NOTE = np.dtype([("list", "<u8"), ("site", "<i8"), ("word", "<u8")])
"""A note of a recorded run: the list's address, the number of the site, the address of a word to be read (0: none)."""

PLACE = 8
"""Words of a place in that list, before which stand the number of places that are taken, and of all."""

TICK = np.dtype([("clock", "<u8"), ("steps", "<i8")])

REPORT = 8
"""Words of a record of the fault log: the operation that stopped waiting, plus one; the value it wanted; the one
it saw.

The log lies in host memory that every device reaches. Its first word stops everything; the record of device d begins at
word `REPORT * (d + 1)`.
"""

STORE_THREADS = 256

SOURCE = include("utility.cuh")
NOTES = include("record.cuh")
