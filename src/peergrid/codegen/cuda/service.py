"""The small kernels beside the computing ones: halos stored into a peer's memory, flags, and clocks."""

from __future__ import annotations

from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.skeletons.layouts import layout_of

COPY_BOX = layout_of("utility.cuh", "CopyBox")
"""A box to copy: addresses of its first value on both sides, pitches in values, extent, first thread block."""

STORES = layout_of("utility.cuh", "Stores")

SIGNAL = layout_of("utility.cuh", "Signaled")
"""A flag to raise or await: its address and value; nanoseconds until waiting ends; the fault log, the operation's
number, and the first word of the device's record in the log."""

SEARCH = layout_of("utility.cuh", "Search")
"""A box to search: the address of its first value, pitches, extent; where the smallest index found is written."""

NOTE = layout_of("record.cuh", "Noted")
"""A note of a recorded run: the list's address, the number of the site, the address of a word to be read (0: none)."""

PLACE = 8
"""Words of a place in that list, before which stand the number of places that are taken, and of all."""

TICK = layout_of("utility.cuh", "Tick")

REPORT = 8
"""Words of a record of the fault log: the operation that stopped waiting, plus one; the value it wanted; the one
it saw.

The log lies in host memory that every device reaches. Its first word stops everything; the record of device d begins at
word `REPORT * (d + 1)`.
"""

STORE_THREADS = 256

SOURCE = include("utility.cuh")
NOTES = include("record.cuh")
