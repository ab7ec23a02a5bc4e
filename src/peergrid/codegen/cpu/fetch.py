"""The lines of memory that row functions in vectors ask for ahead of their use.

Processors foresee what is read next, but only within a page of 4096 bytes, of a limited number of pages at a time and
not far enough ahead for memory that answers late. So every cache line of the foremost planes is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from peergrid.codegen.cpu.lanes import VECTOR

ON_THE_WAY = 72  # cache lines that are asked for and not yet used


def asked_ahead(asked: Sequence[tuple[int, bool]]) -> list[str]:
    """Code of a vector: ask for the cache lines some vectors ahead in the planes of operands, each maybe written."""
    ahead = VECTOR * max(1, ON_THE_WAY // max(1, len(asked)))
    return [
        line
        for number, written in asked
        for line in (
            f"  %f{number}.x = getelementptr i8, ptr %l{number}, i64 %x",
            f"  %f{number}.p = getelementptr i8, ptr %f{number}.x, i64 {ahead}",
            f"  call void @llvm.prefetch.p0(ptr %f{number}.p, i32 {int(written)}, i32 3, i32 1)",
        )
    ]
