"""The row function that copies past the caches: lines that are written whole need not be fetched.

The vectors that go past the caches are whole cache lines of the target; the cells before the first and behind the last
are stored as usual.
"""

from __future__ import annotations

from peergrid.codegen.cpu.lanes import VECTOR, Lanes
from peergrid.codegen.cpu.rows import Operand, RowCode, Write
from peergrid.codegen.cpu.stores import PAST
from peergrid.grid import Index
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read


def past_cache_code(problem: Problem, name: str, rows: int = 1) -> RowCode:
    """The row function that copies a field whose values nobody reads soon, on so many rows at once."""
    rest: Index = (0,) * (problem.grid.ndim - 1)
    operands: tuple[Operand, ...] = tuple(o for n in range(rows) for o in (Write(name, n), Read(name, (n, *rest))))
    return RowCode(_module(Lanes(problem.grid.dtype), rows), operands, (frozenset((name,)),) * len(operands))


def _module(lanes: Lanes, rows: int) -> str:
    """The text of a module with the function `rows`; `line` copies a line, `cells` its ends cell by cell."""
    numbers, number = range(2 * rows), lanes.number
    lines = [
        "define internal void @cells(ptr %to, ptr %from, i64 %bytes) #0 {",
        *_loop(lanes, "0", "%bytes", lanes.size, number, f"align {lanes.size}"),
        "}",
        "",
        "define internal void @line(ptr %to, ptr %from, i64 %bytes) #0 {",
        "  %at = ptrtoint ptr %to to i64",
        "  %beyond = sub i64 0, %at",
        f"  %next = and i64 %beyond, {VECTOR - 1}",
        "  %long = icmp ult i64 %next, %bytes",
        "  %head = select i1 %long, i64 %next, i64 %bytes",
        "  call void @cells(ptr %to, ptr %from, i64 %head)",
        "  %left = sub i64 %bytes, %head",
        f"  %whole = and i64 %left, -{VECTOR}",
        "  %tail = add i64 %head, %whole",
        "  %end = sub i64 %bytes, %tail",
        "  %to.tail = getelementptr i8, ptr %to, i64 %tail",
        "  %from.tail = getelementptr i8, ptr %from, i64 %tail",
        "  call void @cells(ptr %to.tail, ptr %from.tail, i64 %end)",
        *_loop(lanes, "%head", "%tail", VECTOR, lanes.vector, f"align {VECTOR}, !nontemporal !0"),
        "}",
        "",
        "define void @rows(ptr %p, ptr %s, i64 %ny, i64 %nx) #0 {",
        "start:",
        *(line for i in numbers for line in lanes.operand(i)),
        f"  %bytes = mul i64 %nx, {lanes.size}",
        "  br label %line",
        "line:",
        "  %y = phi i64 [ 0, %start ], [ %y.next, %line ]",
        *(f"  %l{i} = phi ptr [ %b{i}, %start ], [ %l{i}.next, %line ]" for i in numbers),
        *(f"  call void @line(ptr %l{i}, ptr %l{i + 1}, i64 %bytes)" for i in numbers[::2]),
        *(f"  %l{i}.next = getelementptr i8, ptr %l{i}, i64 %s{i}" for i in numbers),
        "  %y.next = add i64 %y, 1",
        "  %again = icmp slt i64 %y.next, %ny",
        "  br i1 %again, label %line, label %end",
        "end:",
        "  ret void",
        "}",
        "",
        lanes.attributes,
        PAST,
        "",
    ]
    return "\n".join(lines)


def _loop(lanes: Lanes, first: str, end: str, step: int, kind: str, store: str) -> list[str]:
    """Copy the values of a type from one byte of a line to another, and return."""
    return [
        "  br label %begin",
        "begin:",
        f"  %some = icmp ult i64 {first}, {end}",
        "  br i1 %some, label %loop, label %done",
        "loop:",
        f"  %x = phi i64 [ {first}, %begin ], [ %x.next, %loop ]",
        "  %f = getelementptr i8, ptr %from, i64 %x",
        "  %t = getelementptr i8, ptr %to, i64 %x",
        f"  %v = load {kind}, ptr %f, align {lanes.size}",
        f"  store {kind} %v, ptr %t, {store}",
        f"  %x.next = add i64 %x, {step}",
        f"  %more = icmp ult i64 %x.next, {end}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
    ]
