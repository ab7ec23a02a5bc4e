"""The cache lines that row functions in vectors prefetch.

Processors prefetch by themselves, but only within a page of 4096 bytes, for a limited number of pages at a time, and
not far enough ahead for memory of high latency. So every cache line of the foremost planes is prefetched. Of several
steps the first alone would read from memory while the others compute; so these prefetch what it reads next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peergrid.codegen.cpu.lanes import VECTOR

IN_FLIGHT = 72  # cache lines that are prefetched and not yet used
FIRST_LEVEL, SECOND_LEVEL = 3, 2  # caches, as LLVM numbers them


@dataclass(frozen=True)
class Traffic:
    """The traffic of a row function beside its loads and usual stores.

    past: fields whose new values bypass the caches; early: fields of which it prefetches the cache lines at its cells
    in planes so many further than its own: an earlier step reads them next.
    """

    past: frozenset[str] = frozenset()
    early: tuple[tuple[str, int], ...] = ()


NOTHING = Traffic()


def prefetches(planes: Sequence[tuple[int, bool]]) -> list[str]:
    """Code of a vector: prefetch the cache lines some vectors ahead in the planes of operands, with whether each is
    written.
    """
    ahead = VECTOR * max(1, IN_FLIGHT // max(1, len(planes)))
    return [line for number, written in planes for line in _prefetch(number, ahead, written, FIRST_LEVEL)]


def early_prefetches(operands: Sequence[int]) -> list[str]:
    """Code of a vector: prefetch the cache lines of operands at its own cells."""
    return [line for number in operands for line in _prefetch(number, 0, False, SECOND_LEVEL)]


def _prefetch(number: int, ahead: int, written: bool, level: int) -> list[str]:
    return [
        f"%f{number}.x = getelementptr i8, ptr %l{number}, i64 %x",
        f"%f{number}.p = getelementptr i8, ptr %f{number}.x, i64 {ahead}",
        f"call void @llvm.prefetch.p0(ptr %f{number}.p, i32 {int(written)}, i32 {level}, i32 1)",
    ]
