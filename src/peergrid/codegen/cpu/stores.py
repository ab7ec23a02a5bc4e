"""Stores of a row function in vectors: of whole vectors, some past the caches, and of the end of a line, masked.

All values of a vector are stored in the end, so that loads need not wait for stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from peergrid.codegen.cpu.lanes import VECTOR, Lanes

PAST = "!0 = !{i32 1}"  # what a module has to say where it stores past the caches

Stores = Sequence[tuple[int, str]]
"""Operands, each with the value that is stored there."""


def on_lines(past: Sequence[int]) -> list[str]:
    """Code ahead of all lines: whether vectors of operands are whole cache lines, which alone go past the caches."""
    if not past:
        return []
    return [
        "%begins.0 = add i64 0, 0",
        *(
            line
            for n, number in enumerate(past)
            for line in (
                f"%at{number} = ptrtoint ptr %b{number} to i64",
                f"%with{number} = or i64 %at{number}, %s{number}",
                f"%begins.{n + 1} = or i64 %begins.{n}, %with{number}",
            )
        ),
        f"%beside = and i64 %begins.{len(past)}, {VECTOR - 1}",
        "%on_lines = icmp eq i64 %beside, 0",
    ]


def whole(lanes: Lanes, stores: Stores, past: Sequence[int], prefetched: Sequence[str]) -> tuple[list[str], str]:
    """The code of a whole vector's new values, and the label of the block in which it ends.

    past: the operands that are stored past the caches where `on_lines` finds them on cache lines; prefetched: code that
    prefetches their lines, which is needed elsewhere.
    """
    places = [f"%o{n} = getelementptr i8, ptr %l{i}, i64 %x" for n, (i, _) in enumerate(stores)]
    writes = [(i, f"store {lanes.vector} {value}, ptr %o{n}, align") for n, (i, value) in enumerate(stores)]
    usual = [f"{write} {lanes.size}" for i, write in writes if i not in past]
    if not past:
        return [*places, *usual], "vectors"
    chosen = [
        "br i1 %on_lines, label %past, label %beside_lines",
        "past:",
        *(f"{write} {VECTOR}, !nontemporal !0" for i, write in writes if i in past),
        "br label %stored",
        "beside_lines:",
        *prefetched,
        *(f"{write} {lanes.size}" for i, write in writes if i in past),
        "br label %stored",
        "stored:",
    ]
    return [*places, *usual, *chosen], "stored"


def masked(lanes: Lanes, stores: Stores) -> list[str]:
    """The code of the new values of the cells after the last whole vector."""
    call = f"call void @llvm.masked.store.{lanes.suffix}.p0"
    return [
        line
        for number, (operand, value) in enumerate(stores)
        for line in (
            f"%q{number} = getelementptr i8, ptr %l{operand}, i64 %whole",
            f"{call}({lanes.vector} {value}, ptr %q{number}, i32 {lanes.size}, {lanes.mask} %mask)",
        )
    ]
