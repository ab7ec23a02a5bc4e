"""Digests of the parts of a problem; two problems are equal if all of them are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

from peergrid.grid import Array, Box, Field
from peergrid.stencil.expr import Expr, ordered
from peergrid.stencil.problem import Problem
from peergrid.stencil.remember import remembered

MOST, PARTS = 1 << 24, 16  # most cells of first values in a part, and least number of parts


@remembered()
def identity(problem: Problem) -> Mapping[str, str]:
    """A digest of each part of a problem, by the part's name in words: "the grid", "field 'u'" and so on."""
    grid = problem.grid
    found = {
        "the grid": _digest(grid.shape, grid.boundary, grid.dtype),
        "the updates": _updates(problem),
        "the numbers given to stencils": _digest(sorted((key, repr(value)) for key, value in problem.params.items())),
        "the receivers": _digest([(one.name, one.field, one.cell) for one in problem.receivers]),
    }
    for name, field in problem.fields.items():
        found[f"field '{name}'"] = _digest(_corners(field.box), field.axes, _first(field))
    for name, signal in problem.signals.items():
        found[f"signal '{name}'"] = _digest(_values(signal.samples), *(signal.slopes and (signal.slopes, signal.first)))
    for name, table in problem.tables.items():
        found[f"table '{name}'"] = _digest(_values(table.values))
    for one in problem.reductions:
        found[f"reduction '{one.name}'"] = _digest(one.kind, one.every, _corners(one.box), _expressions([one.value]))
    return found


def _updates(problem: Problem) -> str:
    digest = hashlib.sha256()
    for stage in problem.stages:
        for update in stage.updates:
            targets = tuple(one.target for one in update.assignments)
            values = _expressions(one.value for one in update.assignments)
            digest.update(_digest(len(stage.updates), _corners(update.box), targets, values).encode())
    return digest.hexdigest()


def _expressions(values: Iterable[Expr]) -> str:
    """A digest of expressions: of each part once, with the numbers of those that it is computed from."""
    results = tuple(values)
    parts = ordered(results)
    number = {part: place for place, part in enumerate(parts)}
    digest = hashlib.sha256()
    for part in parts:
        operands = [number[operand] for operand in part.operands]
        digest.update(f"{type(part).__name__}{part.label!r}{operands}\n".encode())
    digest.update(repr([number[result] for result in results]).encode())
    return digest.hexdigest()


def _first(field: Field) -> str:
    """A digest of the first values; a function is called slab by slab."""
    if field.made_by is None:
        return _values(field.init)
    digest = hashlib.sha256()
    for slab in field.box.slabs(min(MOST, field.box.size // PARTS)):
        digest.update(_values(field.values(slab)).encode())
    return digest.hexdigest()


def _values(array: Array) -> str:
    digest = hashlib.sha256(repr(array.shape).encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _corners(box: Box) -> tuple[list[int], list[int]]:
    """The corners as Python numbers, from any number type."""
    return list(map(int, box.lo)), list(map(int, box.hi))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()
