"""The memory that a run takes of a GPU, as its driver reports it: arrays in whole pages, and what kernels need."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.runtime.cuda.memory.fields import Plan

PAGE = 2 << 20  # bytes: large arrays lie in pages of their own
SMALL = 1 << 20  # bytes of an array that shares a page with others
KERNELS = 4 << 20  # bytes of kernels, tables of tiles, counters


def taken(plan: Plan, device: int) -> int:
    """Bytes that a device's memory has less while a run is in it."""
    arrays = list(_arrays(plan, device))
    pages = sum(-(-count // PAGE) for count in arrays if count > SMALL)
    small = sum(count for count in arrays if count <= SMALL)
    return (pages + -(-small // PAGE)) * PAGE + KERNELS


def _arrays(plan: Plan, device: int) -> Iterator[int]:
    """Bytes of each array; those of which only the sum is known are one."""
    blocks, listed = plan.blocks[device], list[int]()
    for name, block in blocks.items():
        listed += [block.bytes] * plan.slots(name)
    listed += [blocks[name].bytes for name in plan.scratch]
    yield from listed
    yield plan.bytes(device) - sum(listed)
