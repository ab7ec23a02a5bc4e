"""The lines of memory that row functions in vectors ask for ahead of their use.

Processors foresee what is read next, but only within a page of 4096 bytes and of a limited number of pages at a time.
Where few planes are read, only the first values of a page would be waited for: they are asked for some lines ahead.
Where many are, every cache line is asked for.
"""

from __future__ import annotations

from peergrid.codegen.cpu.lanes import VECTOR

PAGE = 4096  # bytes; fetching ahead ends there
LINES_AHEAD = 2  # lines from where a page is asked for to where it begins
ASKED = 8  # cache lines of a page that are asked for
AHEAD = 256  # bytes ahead of its use that a cache line is asked for, where each is
FORESEEN = 24  # planes; processors follow 32 pages, and lines beside a plane's own lie in further ones


def page_ahead(number: int, written: bool) -> list[str]:
    """Code of a line: ask for the first values of a page that begins some lines ahead in an operand's plane."""
    name = f"%f{number}"
    ask = [
        line
        for k in range(ASKED)
        for line in (
            f"  {name}.{k} = getelementptr i8, ptr {name}.page, i64 {VECTOR * k}",
            f"  {_prefetch(f'{name}.{k}', written, 2)}",
        )
    ]
    return [
        f"  {name}.by = mul i64 %s{number}, {LINES_AHEAD}",
        f"  {name}.line = getelementptr i8, ptr %l{number}, i64 {name}.by",
        f"  {name}.from = ptrtoint ptr {name}.line to i64",
        f"  {name}.up = add i64 {name}.from, {PAGE - 1}",
        f"  {name}.start = and i64 {name}.up, -{PAGE}",
        f"  {name}.far = sub i64 {name}.start, {name}.from",
        f"  {name}.there = icmp ult i64 {name}.far, %bytes",
        f"  br i1 {name}.there, label {name}.ask, label {name}.done",
        f"f{number}.ask:",
        f"  {name}.page = inttoptr i64 {name}.start to ptr",
        *ask,
        f"  br label {name}.done",
        f"f{number}.done:",
    ]


def vector_ahead(number: int, written: bool) -> list[str]:
    """Code of a vector: ask for the cache line that lies some vectors ahead in an operand's plane."""
    name = f"%f{number}"
    return [
        f"  {name}.x = getelementptr i8, ptr %l{number}, i64 %x",
        f"  {name}.p = getelementptr i8, ptr {name}.x, i64 {AHEAD}",
        f"  {_prefetch(f'{name}.p', written, 3)}",
    ]


def _prefetch(pointer: str, written: bool, near: int) -> str:
    """near: 3 for the first-level cache, 2 for the second."""
    return f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(written)}, i32 {near}, i32 1)"
