"""Look-ups of a row function in vectors: many entries of a table at once.

A processor that permutes vectors of 64 bytes keeps short tables in a few of them, where an entry takes about as long as
a sum. Elsewhere entries of tables of a few are chosen by comparisons, which tables of one index share. Otherwise the
entries are loaded one by one, which takes longer than loading a vector of a field.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peergrid.codegen.cpu.lanes import VECTOR, Lanes
from peergrid.grid import Array

PERMUTED = 8  # vectors of a table from which entries are permuted
CHOSEN = 8  # entries of a table from which they are chosen by comparisons

Let = Callable[[str], str]
"""The function that gives the value of an instruction a name."""


def filled(values: Array) -> Array:
    """A table as it lies in memory: whole vectors."""
    found = np.zeros(-(-values.nbytes // VECTOR) * VECTOR // values.itemsize, values.dtype)
    found[: len(values)] = values
    return found


def looked_up(lanes: Lanes, let: Let, number: int, count: int, places: str, permuting: bool) -> str:
    """The name of the entries at some places of the table that is operand `number` and has `count` entries."""
    parts = -(-count // lanes.count)
    if not permuting and count <= CHOSEN:
        return _chosen(lanes, let, number, count, places)
    if not permuting or parts > PERMUTED:
        return _loaded(lanes, let, number, places)
    vectors = [_vector(lanes, let, number, part) for part in range(parts)]
    if parts == 1:
        return let(_called(lanes, "permvar", f"{lanes.vector} {vectors[0]}, {lanes.words} {places}"))
    found = [_of_two(lanes, let, vectors[n], vectors[min(n + 1, parts - 1)], places) for n in range(0, parts, 2)]
    chosen = found[-1]
    for pair in reversed(range(len(found) - 1)):
        before = let(f"icmp ult {lanes.words} {places}, {_whole(lanes, 2 * lanes.count * (pair + 1))}")
        chosen = let(f"select {lanes.mask} {before}, {lanes.vector} {found[pair]}, {lanes.vector} {chosen}")
    return chosen


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


def _chosen(lanes: Lanes, let: Let, number: int, count: int, places: str) -> str:
    """Entries of a table, each a value for all cells that is chosen where they have its place."""
    found = ""
    for place in range(count):
        address = let(f"getelementptr {lanes.number}, ptr %l{number}, i64 {place}")
        value = let(f"load {lanes.number}, ptr {address}")
        one = let(f"insertelement {lanes.vector} poison, {lanes.number} {value}, i64 0")
        zeros = f"<{lanes.count} x i32> zeroinitializer"
        entry = let(f"shufflevector {lanes.vector} {one}, {lanes.vector} poison, {zeros}")
        here = let(f"icmp eq {lanes.words} {places}, {_whole(lanes, place)}") if found else ""
        found = let(f"select {lanes.mask} {here}, {lanes.vector} {entry}, {lanes.vector} {found}") if found else entry
    return found


def _whole(lanes: Lanes, value: int) -> str:
    return f"splat (i{8 * lanes.size} {value})"


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
