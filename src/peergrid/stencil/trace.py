"""From a Python function of one cell to an `Update`: the function runs once, on stand-ins that note what it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from peergrid.errors import UsageError
from peergrid.grid import Field, Grid, Index, Signal
from peergrid.stencil.expr import Expr, Now, Number, Param, Read, as_expr
from peergrid.stencil.problem import Assignment, Update


@dataclass
class _Notes:
    """What the traced function did so far."""

    fields: dict[str, Field] = field(default_factory=dict)
    signals: dict[str, Signal] = field(default_factory=dict)
    params: dict[str, float] = field(default_factory=dict)
    assignments: dict[str, Assignment] = field(default_factory=dict)

    def assign(self, target: str, value: Number) -> None:
        if target in self.assignments:
            raise UsageError(f"'{target}.next' is assigned twice in one stencil; use one assignment, or two stages.")
        expr = as_expr(value)
        if expr.is_condition:
            raise UsageError(f"'{target}.next' takes a number, got a condition; use peergrid.where(condition, 1, 0).")
        self.assignments[target] = Assignment(target, expr)


@dataclass(frozen=True)
class _Cell:
    """Stands for a field: indexing gives reads, `next` takes the new value, `prev` is the value one step before."""

    described: Field
    notes: _Notes

    def __getitem__(self, offset: int | Index) -> Read:
        self.notes.fields.setdefault(self.described.name, self.described)
        return Read(self.described.name, _offset(self.described, offset))

    @property
    def next(self) -> _Next:
        return _Next(self.described, self.notes)

    @property
    def prev(self) -> _Cell:
        before = replace(self.described, name=f"{self.described.name}.prev")
        if before.name not in self.notes.assignments:
            self.notes.fields.setdefault(before.name, before)
            self.notes.assign(before.name, self[(0,) * before.grid.ndim])
        return _Cell(before, self.notes)


@dataclass(frozen=True)
class _Next:
    described: Field
    notes: _Notes

    def __setitem__(self, offset: int | Index, value: Number) -> None:
        if any(_offset(self.described, offset)):
            raise UsageError(
                f"A stencil writes its own cell: expected '{self.described.name}.next' at offset 0, got {offset}."
            )
        self.notes.fields.setdefault(self.described.name, self.described)
        self.notes.assign(self.described.name, value)


@dataclass(frozen=True)
class _Clock:
    """Stands for a signal."""

    described: Signal
    notes: _Notes

    @property
    def now(self) -> Now:
        self.notes.signals.setdefault(self.described.name, self.described)
        return Now(self.described.name)


@dataclass(frozen=True)
class Stencil:
    """A traced function: calling it with fields, signals and numbers gives the update of every cell."""

    function: Callable[..., None]

    @property
    def name(self) -> str:
        return self.function.__name__

    def __call__(self, *args: Field | Signal | float, **kwargs: Field | Signal | float) -> Update:
        """The update of all cells of the fields' grid; narrow it with `.within(box)`.

        Raises UsageError where an argument is no field, signal or number, or the function assigns nothing.
        """
        notes = _Notes()
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        stand_ins = {name: self._stand_in(name, value, notes) for name, value in bound.arguments.items()}
        self.function(**stand_ins)
        if not notes.assignments:
            raise UsageError(f"Stencil '{self.name}' assigns nothing: expected at least one 'field.next[...] = ...'.")
        return Update(
            name=self.name,
            box=_grid(notes).box,
            assignments=tuple(notes.assignments.values()),
            fields=tuple(notes.fields.values()),
            signals=tuple(notes.signals.values()),
            params=tuple(notes.params.items()),
        )

    def _stand_in(self, name: str, value: object, notes: _Notes) -> _Cell | _Clock | Expr:
        if isinstance(value, Field):
            return _Cell(value, notes)
        if isinstance(value, Signal):
            return _Clock(value, notes)
        if isinstance(value, int | float) and not isinstance(value, bool):
            key = f"{name}={float(value)!r}"
            notes.params[key] = float(value)
            return Param(key)
        raise UsageError(f"Stencil '{self.name}' takes fields, signals and numbers; '{name}' is {value!r}.")


def stencil(function: Callable[..., None]) -> Stencil:
    """Decorator: a function of one cell becomes a stencil.

    Inside, `u[i, j]` reads field `u` at an offset from the cell, `u.next[0, 0] = ...` gives its new value,
    `u.prev[0, 0]` is its value one step earlier (equal to the first values at step 0), `s.now` the signal's sample.
    """
    return Stencil(function)


def _grid(notes: _Notes) -> Grid:
    return next(iter(notes.fields.values())).grid


def _offset(described: Field, offset: int | Index) -> Index:
    index = offset if isinstance(offset, tuple) else (offset,)
    if len(index) != described.grid.ndim or not all(isinstance(i, int) for i in index):
        raise UsageError(
            f"'{described.name}' is indexed by {described.grid.ndim} whole-number offsets from the cell, "
            f"got {offset!r}."
        )
    return index
