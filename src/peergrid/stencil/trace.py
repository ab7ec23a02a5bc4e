"""From a Python function of one cell to an `Update`: the function runs once, on stand-ins that note what it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from operator import index
from typing import NoReturn

from peergrid.errors import UsageError
from peergrid.grid import Field, Grid, Index, Signal
from peergrid.stencil.expr import Expr, Now, Number, Param, Read, as_expr, is_number, shown
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


class _StandIn:
    """Base of what stands for an argument: it is no value by itself, and says so."""

    def _refuse(self, _other: object = None) -> NoReturn:
        raise UsageError(f"A stencil combines values, got {self!r}.")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse


@dataclass(repr=False)
class _Cell(_StandIn):
    """Stands for a field: indexing gives reads, `next` takes the new value, `prev` is the value one step before."""

    described: Field
    notes: _Notes

    def __repr__(self) -> str:
        return f"'{self.described.name}' without a cell; write {self._example}"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"'{self.described.name}.{name}' is unknown in a stencil: there are {self._example}, its 'next' and 'prev'."
        )

    def __setitem__(self, offset: int | Index, value: Number) -> NoReturn:
        raise UsageError(
            f"A stencil assigns to 'next', got an assignment to '{self.described.name}[...]'; write "
            f"{self.described.name}.next[...] = ..., offset 0."
        )

    @property
    def _example(self) -> str:
        return f"{self.described.name}[{', '.join('0' * self.described.grid.ndim)}]"

    def __getitem__(self, offset: int | Index) -> Read:
        self.notes.fields.setdefault(self.described.name, self.described)
        return Read(self.described.name, _offset(self.described, offset))

    @property
    def next(self) -> _Next:
        return _Next(self.described, self.notes)

    @next.setter
    def next(self, value: Number) -> NoReturn:
        zeros = ", ".join("0" * self.described.grid.ndim)
        raise UsageError(
            f"A stencil assigns to '{self.described.name}.next[{zeros}]', got an assignment to "
            f"'{self.described.name}.next'; add the offset."
        )

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

    def __getitem__(self, offset: int | Index) -> NoReturn:
        raise UsageError(
            f"'{self.described.name}.next' is written, not read: all reads of a stage see what was there before it; "
            f"read '{self.described.name}', or put what needs the new values into a stage of its own."
        )

    def __setitem__(self, offset: int | Index, value: Number) -> None:
        if any(_offset(self.described, offset)):
            raise UsageError(
                f"A stencil writes its own cell: expected '{self.described.name}.next' at offset 0, got {offset}."
            )
        self.notes.fields.setdefault(self.described.name, self.described)
        self.notes.assign(self.described.name, value)


@dataclass(frozen=True, repr=False)
class _Clock(_StandIn):
    """Stands for a signal."""

    described: Signal
    notes: _Notes

    def __repr__(self) -> str:
        return f"the signal '{self.described.name}' without a time; write {self.described.name}.now"

    @property
    def now(self) -> Now:
        self.notes.signals.setdefault(self.described.name, self.described)
        return Now(self.described.name)


StandIn = _Cell | _Clock | Expr | tuple["StandIn", ...]
"""What the traced function gets for a field, a signal, a number, or a list of those."""

Argument = Field | Signal | float | Sequence["Argument"]


@dataclass(frozen=True)
class Stencil:
    """A traced function: calling it with fields, signals and numbers gives the update of every cell."""

    function: Callable[..., None]

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))  # a partial has none

    def __call__(self, *args: Argument, **kwargs: Argument) -> Update:
        """The update of all cells of the fields' grid; narrow it with `.within(box)`.

        Raises UsageError where an argument is no field, signal, number or list of those, or nothing is assigned.
        """
        notes = _Notes()
        bound = self._bound(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = self._stand_in(name, value, notes)
        self.function(*bound.args, **bound.kwargs)
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

    def _bound(self, *args: Argument, **kwargs: Argument) -> inspect.BoundArguments:
        signature = inspect.signature(self.function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"Stencil '{self.name}' takes {signature}: {error}.") from None
        bound.apply_defaults()
        return bound

    def _stand_in(self, name: str, value: object, notes: _Notes) -> StandIn:
        if isinstance(value, tuple | list):
            return tuple(self._stand_in(f"{name}[{i}]", one, notes) for i, one in enumerate(value))
        if isinstance(value, Field):
            return _Cell(value, notes)
        if isinstance(value, Signal):
            return _Clock(value, notes)
        if is_number(value) and isfinite(value):
            key = f"{name}={float(value)!r}"
            notes.params[key] = float(value)
            return Param(key)
        raise UsageError(f"Stencil '{self.name}' takes fields, signals and finite numbers; '{name}' is {shown(value)}.")


def stencil(function: Callable[..., None]) -> Stencil:
    """Decorator: a function of one cell becomes a stencil.

    Inside, `u[i, j]` reads field `u` at an offset from the cell, `u.next[0, 0] = ...` gives its new value,
    `u.prev[0, 0]` is its value one step earlier (equal to the first values at step 0), `s.now` the signal's sample.
    """
    return Stencil(function)


def _grid(notes: _Notes) -> Grid:
    return next(iter(notes.fields.values())).grid


def _offset(described: Field, offset: int | Index) -> Index:
    given = offset if isinstance(offset, tuple) else (offset,)
    if len(given) != described.grid.ndim or not all(hasattr(i, "__index__") for i in given):
        raise UsageError(
            f"'{described.name}' is indexed by {described.grid.ndim} whole-number offsets from the cell, known before "
            f"the run, got {', '.join(map(shown, given))}."
        )
    return tuple(map(index, given))
