"""Look-ups of a row function in vectors: many entries of a table at once.

A processor that permutes vectors of 64 bytes keeps short tables in a few of them, where an entry takes about as long as
a sum. Of longer tables, and elsewhere, the entries are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peergrid.codegen.cpu.lanes import VECTOR, Lanes
from peergrid.grid import Array

PERMUTED = 4  # vectors of a table from which entries are permuted

Let = Callable[[str], str]
"""What gives an instruction's value a name."""


def filled(values: Array) -> Array:
    """A table as it lies in memory: whole vectors."""
    found = np.zeros(-(-values.nbytes // VECTOR) * VECTOR // values.itemsize, values.dtype)
    found[: len(values)] = values
    return found


def looked_up(lanes: Lanes, let: Let, number: int, count: int, places: str, permuting: bool) -> str:
    """The name of the entries at some places of the table that is operand `number` and has `count` entries."""
    parts = -(-count // lanes.count)
    if not permuting or parts > PERMUTED:
        return _loaded(lanes, let, number, places)
    vectors = [_vector(lanes, let, number, part) for part in range(parts)]
    if parts == 1:
        return let(_called(lanes, "permvar", f"{lanes.vector} {vectors[0]}, {lanes.words} {places}"))
    found = [_of_two(lanes, let, vectors[n], vectors[min(n + 1, parts - 1)], places) for n in range(0, parts, 2)]
    if parts == 2:
        return found[0]
    size = 8 * lanes.size
    first = let(f"icmp ult {lanes.words} {places}, splat (i{size} {2 * lanes.count})")
    return let(f"select {lanes.mask} {first}, {lanes.vector} {found[0]}, {lanes.vector} {found[1]}")


def entry_functions(lanes: Lanes) -> list[str]:
    """The functions of LLVM that look-ups may call."""
    vector, words = lanes.vector, lanes.words
    return [
        f"declare {vector} {_name(lanes, 'permvar')}({vector}, {words})",
        f"declare {vector} {_name(lanes, 'vpermi2var')}({vector}, {words}, {vector})",
    ]


def _vector(lanes: Lanes, let: Let, number: int, part: int) -> str:
    place = let(f"getelementptr i8, ptr %l{number}, i64 {VECTOR * part}")
    return let(f"load {lanes.vector}, ptr {place}, align {lanes.size}")


def _of_two(lanes: Lanes, let: Let, one: str, two: str, places: str) -> str:
    """Entries of two vectors of a table; of a place its last digits count alone."""
    return let(_called(lanes, "vpermi2var", f"{lanes.vector} {one}, {lanes.words} {places}, {lanes.vector} {two}"))


def _loaded(lanes: Lanes, let: Let, number: int, places: str) -> str:
    """Entries of a table in memory, loaded one by one."""
    found, whole = "poison", f"i{8 * lanes.size}"
    for lane in range(lanes.count):
        place = let(f"extractelement {lanes.words} {places}, i64 {lane}")
        address = let(f"getelementptr {lanes.number}, ptr %l{number}, {whole} {place}")
        value = let(f"load {lanes.number}, ptr {address}")
        found = let(f"insertelement {lanes.vector} {found}, {lanes.number} {value}, i64 {lane}")
    return found


def _called(lanes: Lanes, function: str, arguments: str) -> str:
    return f"call {lanes.vector} {_name(lanes, function)}({arguments})"


def _name(lanes: Lanes, function: str) -> str:
    if function == "permvar":
        return f"@llvm.x86.avx512.permvar.{'sf' if lanes.size == 4 else 'df'}.512"
    return f"@llvm.x86.avx512.vpermi2var.{'ps' if lanes.size == 4 else 'pd'}.512"
