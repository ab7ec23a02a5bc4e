"""The words of a row of a command buffer; known without a compiler, which is slow to come."""

from __future__ import annotations

ARGUMENTS = 11
"""Every call passes this many 64-bit words: the most a function of the driver takes (`cuLaunchKernel`).

The calling conventions of Linux on x86-64 and AArch64 pass integers and pointers in 64-bit registers and stack slots
that the caller cleans up, so a function that takes fewer, or 32-bit ones, finds what it expects.
"""

CALL, POLL, BARRIER = 0, 1, 2
"""Kinds of rows: call a function; poll until it no longer answers 'not ready' (words: the handle, and microseconds to
sleep between two questions); wait at a barrier of hosts."""

KIND, CONTEXT, FUNCTION, FIRST = 0, 1, 2, 3
COLUMNS = FIRST + ARGUMENTS
