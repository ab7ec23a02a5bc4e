"""The cache lines that row functions in vectors prefetch.

Processors prefetch by themselves, but only within a page of 4096 bytes, for a limited number of pages at a time, and
not far enough ahead for memory of high latency. So every cache line of the foremost planes is prefetched.
"""

from __future__ import annotations

from collections.abc import Sequence

from peergrid.codegen.cpu.lanes import VECTOR

IN_FLIGHT = 72  # cache lines that are prefetched and not yet used


def prefetches(planes: Sequence[tuple[int, bool]]) -> list[str]:
    """Code of a vector: prefetch the cache lines some vectors ahead in the planes of operands, with whether each is
    written.
    """
    ahead = VECTOR * max(1, IN_FLIGHT // max(1, len(planes)))
    return [
        line
        for number, written in planes
        for line in (
            f"  %f{number}.x = getelementptr i8, ptr %l{number}, i64 %x",
            f"  %f{number}.p = getelementptr i8, ptr %f{number}.x, i64 {ahead}",
            f"  call void @llvm.prefetch.p0(ptr %f{number}.p, i32 {int(written)}, i32 3, i32 1)",
        )
    ]
