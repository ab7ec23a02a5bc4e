"""The kernel that moves the messages of an exchange by NVSHMEM."""

from __future__ import annotations

from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.skeletons.layouts import layout_of

PART = layout_of("put.cuh", "Part")
"""A part of a message: addresses of its first run on both sides, pitches, runs and bytes of each, its words in the
symmetric heap, the process at the other end, and whether the part leaves."""

PARTS = layout_of("put.cuh", "Parts")

WORDS = 3
"""Words of a part on each side."""

THREADS = 256
ENTRY = "put_messages"
SOURCE = include("put.cuh")
