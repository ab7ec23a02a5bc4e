"""From a Python function of one cell to an `Update`: the function is called once, with stand-ins that record its
operations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from operator import index
from sys import float_info
from typing import Any, NoReturn, Self, TypeVar

import numpy as np

from peergrid.arguments import MOST, check_name, is_one_of, is_whole
from peergrid.errors import UsageError
from peergrid.grid import Field, Grid, Index, Signal, Table
from peergrid.stencil.elementary import expanded
from peergrid.stencil.expr import Const, Entry, Expr, Now, Number, Param, Read, as_expr, is_number, ordered, shown
from peergrid.stencil.problem import Assignment, Update, add_by_name
from peergrid.stencil.reduction import KINDS, PREVIOUS, Reduction, ReductionKind


@dataclass
class _Notes:
    """The operations of the traced function so far."""

    fields: dict[str, Field] = field(default_factory=dict)
    signals: dict[str, Signal] = field(default_factory=dict)
    params: dict[str, float] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    assignments: dict[str, Assignment] = field(default_factory=dict)

    def keep(self, before: Field, now: Field) -> None:
        """Let the first field take, in every step, the value of the other before it."""
        add_by_name(self.fields, before)
        add_by_name(self.fields, now)
        if before.name not in self.assignments:
            self.assign(before.name, Read(now.name, (0,) * now.grid.ndim))

    def assign(self, target: str, value: Number) -> None:
        if target in self.assignments:
            raise UsageError(f"'{target}.next' is assigned twice in one stencil; use one assignment, or two stages.")
        expr = as_expr(value)
        if expr.is_condition:
            raise UsageError(f"'{target}.next' takes a number, got a condition; use peergrid.where(condition, 1, 0).")
        self.assignments[target] = Assignment(target, expr)


@dataclass
class _ReductionNotes(_Notes):
    """The operations of a reduced function, which assigns nothing and needs no field for `prev`."""

    def keep(self, before: Field, now: Field) -> None:
        pass

    def assign(self, target: str, value: Number) -> None:
        raise UsageError(
            f"A reduction returns the value of a cell and assigns nothing, got '{target}.next[...] = ...'."
        )


class _StandIn:
    """Base of the stand-ins for arguments; use of one as a value is refused with a sentence."""

    def _refuse(self, _other: object = None) -> NoReturn:
        raise UsageError(f"A stencil combines values, got {self!r}.")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse
    __pow__ = __rpow__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __abs__ = __pos__ = __invert__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _refuse
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """True for the same stand-in; comparison with a number is refused."""
        return self._refuse() if isinstance(other, Real) else self is other


@dataclass(eq=False, repr=False)
class Cell(_StandIn):
    """The type of a stencil's parameter for a field.

    Indexing reads the field, `next` is assigned the new value, `prev` is the value one step earlier.
    """

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
        add_by_name(self.notes.fields, self.described)
        return Read(self.described.name, _offset(self.described, offset))

    @property
    def next(self) -> Next:
        return Next(self.described, self.notes)

    @next.setter
    def next(self, value: Number) -> NoReturn:
        self._refuse_assignment("next", "add the offset")

    @property
    def prev(self) -> Cell:
        first = self.described.earlier or self.described
        before = replace(first, name=f"{self.described.name}{PREVIOUS}")
        self.notes.keep(before, self.described)
        return Cell(before, self.notes)

    @prev.setter
    def prev(self, value: Number) -> NoReturn:
        self._refuse_assignment("prev", "the value before the step is kept by itself")

    def _refuse_assignment(self, to: str, hint: str) -> NoReturn:
        name, zeros = self.described.name, ", ".join("0" * self.described.grid.ndim)
        raise UsageError(f"A stencil assigns to '{name}.next[{zeros}]', got an assignment to '{name}.{to}'; {hint}.")


@dataclass(frozen=True)
class Next:
    """The new value of a field: assigned at offset 0."""

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
        add_by_name(self.notes.fields, self.described)
        self.notes.assign(self.described.name, value)


@dataclass(frozen=True, eq=False, repr=False)
class Clock(_StandIn):
    """The type of a stencil's parameter for a signal: `now` is its sample."""

    described: Signal
    notes: _Notes

    __getitem__ = _StandIn._refuse

    def __repr__(self) -> str:
        return f"the signal '{self.described.name}' without a time; write {self.described.name}.now"

    @property
    def now(self) -> Now:
        add_by_name(self.notes.signals, self.described)
        return Now(self.described.name)


@dataclass(frozen=True, eq=False, repr=False)
class Lookup(_StandIn):
    """The type of a stencil's parameter for a table: indexed by a value, it gives the entry at that place."""

    described: Table
    notes: _Notes

    def __repr__(self) -> str:
        return f"the table '{self.described.name}' without an index; write {self.described.name}[...]"

    def __getitem__(self, index: Number) -> Entry:
        add_by_name(self.notes.tables, self.described)
        name, where = self.described.name, as_expr(index)
        if where.is_condition:
            raise UsageError(
                f"Table '{name}' is indexed by a number, got a condition; use peergrid.where(condition, 1, 0)."
            )
        return Entry(name, where)


class Entries(tuple["StandIn", ...]):
    """The stand-in for a list, called `name` in sentences: a tuple of the stand-ins for its entries."""

    name: str

    def __new__(cls, name: str, entries: Iterable[StandIn]) -> Self:
        found = super().__new__(cls, entries)
        found.name = name
        return found

    def __repr__(self) -> str:
        return f"the list '{self.name}' of length {len(self)} without the place of an entry; write {self.name}[...]"

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except (IndexError, TypeError):
            raise UsageError(
                f"The list '{self.name}' of length {len(self)} is indexed by whole numbers below its length, known "
                f"before the run, got {shown(place)}; give a longer list, or use a table."
            ) from None

    __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _StandIn._refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __and__ = __rand__ = __or__ = __ror__ = _StandIn._refuse


StandIn = Cell | Clock | Lookup | Expr | tuple["StandIn", ...]
"""The value that the traced function gets for a field, a signal, a table, a number, or a list of those."""

Function = TypeVar("Function", bound=Callable[..., object])

Argument = Field | Signal | Table | float | Sequence["Argument"]


@dataclass(frozen=True, repr=False)
class Stencil:
    """A stencil: a call with fields, signals and numbers traces its function to the update of every cell."""

    function: Callable[..., None]

    def __repr__(self) -> str:
        return f"Stencil({self.name})"

    @property
    def name(self) -> str:
        return _name(self.function)

    def __call__(self, *args: Argument, **kwargs: Argument) -> Update:
        """The update of all cells of the fields' grid; `.within(box)` confines it.

        Raises UsageError for arguments other than fields, signals, tables, numbers and lists of those, and if nothing
        is assigned.
        """
        notes, what = _Notes(), f"Stencil '{self.name}'"
        _traced(what, self.function, notes, *args, **kwargs)
        if not notes.assignments:
            raise UsageError(f"{what} assigns nothing: expected at least one 'field.next[...] = ...'.")
        grid = _grid(notes)
        return Update(
            name=self.name,
            box=grid.box,
            assignments=tuple(replace(a, value=_basic(what, a.value, grid)) for a in notes.assignments.values()),
            fields=tuple(notes.fields.values()),
            signals=tuple(notes.signals.values()),
            params=_params(what, notes, grid),
            tables=tuple(notes.tables.values()),
        )


@dataclass(frozen=True)
class Reducer:
    """A function of one cell whose values are reduced: a call with fields and numbers gives the reduction."""

    function: Callable[..., Expr]
    kind: ReductionKind
    every: int
    name: str

    def __call__(self, *args: Argument, **kwargs: Argument) -> Reduction:
        """The reduction of all cells of the fields' grid; `.within(box)` confines it.

        Raises UsageError for arguments other than fields, tables, numbers and lists of those, and if no number is
        returned.
        """
        notes, what = _ReductionNotes(), f"Reduction '{self.name}'"
        value = _traced(what, self.function, notes, *args, **kwargs)
        if not isinstance(value, Expr | int | float) or isinstance(value, bool):
            raise UsageError(f"{what} returns the value of a cell such as 'u[0, 0]', got {shown(value)}.")
        expr = as_expr(value)
        if expr.is_condition:
            raise UsageError(f"{what} returns a number, got a condition; use peergrid.where(condition, 1, 0).")
        if notes.signals:
            raise UsageError(f"{what} reads the signal '{min(notes.signals)}', whose samples you have; use fields.")
        if not notes.fields:
            raise UsageError(f"{what} reads no field; return an expression of at least one, such as 'u[0, 0]'.")
        grid = _grid(notes)
        fields, params = tuple(notes.fields.values()), _params(what, notes, grid)
        value, tables = _basic(what, expr, grid), tuple(notes.tables.values())
        return Reduction(self.name, self.kind, value, self.every, grid.box, fields, params, tables=tables)


def reduction(
    kind: ReductionKind | None = None, every: int = 1, name: str | None = None
) -> Callable[[Callable[..., Expr]], Reducer]:
    """Decorator: reduce the value that a function of one cell returns over all cells, after every `every` steps.

    kind: required: sum, mean, max, min or l2 (the square root of the sum of squares); every: after steps `every`,
    2 · `every` and so on; name: in the results, by default the function's. Inside, `u[i, j]` is the value after the
    step, `u.prev[0, 0]` that before it.
    """
    kinds = f"A reduction is one of {', '.join(KINDS)}"
    if kind is None or callable(kind):
        raise UsageError(f"{kinds}, got none; write @reduction('sum') above its function.")
    if not is_one_of(kind, KINDS):
        raise UsageError(f"{kinds}, got {shown(kind)}.")
    if not is_whole(every) or not 1 <= every <= MOST:
        raise UsageError(
            f"A reduction is made after every so many whole steps, at least 1, got every = {shown(every)}."
        )
    if name is not None:
        check_name("A reduction", name)
    return lambda function: Reducer(_function("reduction", function), kind, index(every), name or _name(function))


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))  # a partial has none


def _params(what: str, notes: _Notes, grid: Grid) -> tuple[tuple[str, float], ...]:
    """The numbers that the function is called with, each of the grid's precision."""
    for key, value in notes.params.items():
        _check_range(what, key, value, grid)
    return tuple(notes.params.items())


def _basic(what: str, value: Expr, grid: Grid) -> Expr:
    """A traced value in basic operations, with numbers of the grid's precision."""
    for part in ordered((value,)):
        if isinstance(part, Const) and isfinite(part.value):
            _check_range(what, repr(part.value), part.value, grid)
    return expanded(value, grid.dtype)


def _check_range(what: str, shown_as: str, value: float, grid: Grid) -> None:
    if abs(value) > float(np.finfo(grid.dtype).max):
        raise UsageError(f"{what} takes numbers of {grid.dtype}, got {shown_as}; use other units or a grid of float64.")


def _traced(what: str, function: Callable[..., object], notes: _Notes, *args: Argument, **kwargs: Argument) -> object:
    """The value of the function, called with stand-ins."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{what} takes {signature}: {error}.") from None
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        try:
            bound.arguments[name] = _stand_in(what, name, value, notes)
        except RecursionError:
            raise UsageError(f"{what} takes lists of a few levels; '{name}' has more, or contains itself.") from None
    return function(*bound.args, **bound.kwargs)


def _stand_in(what: str, name: str, value: object, notes: _Notes) -> StandIn:
    if isinstance(value, tuple | list):
        return Entries(name, (_stand_in(what, f"{name}[{i}]", one, notes) for i, one in enumerate(value)))
    if isinstance(value, Field):
        return Cell(value, notes)
    if isinstance(value, Signal):
        return Clock(value, notes)
    if isinstance(value, Table):
        return Lookup(value, notes)
    value = value.item() if isinstance(value, np.floating) else value  # NumPy would round the largest number for them
    if is_number(value) and abs(value) <= float_info.max:
        key = f"{name}={float(value)!r}"
        notes.params[key] = float(value)
        return Param(key)
    raise UsageError(f"{what} takes fields, signals, tables and finite numbers; '{name}' is {shown(value)}.")


def stencil(function: Callable[..., None]) -> Stencil:
    """Decorator: a function of one cell becomes a stencil.

    Inside, `u[i, j]` reads field `u` at an offset from the cell, `u.next[0, 0] = ...` assigns the cell's new value,
    `u.prev[0, 0]` is the value one step earlier (at step 0 the first values, or `prev` of `Grid.field`), and `s.now` is
    the sample of signal `s`. The function is called once, to record its expressions; it is not run for each cell.
    """
    return Stencil(_function("stencil", function))


def _function(what: str, given: Function) -> Function:
    if not callable(given):
        raise UsageError(f"A {what} is made of a function of one cell, got {shown(given)}.")
    return given


def _grid(notes: _Notes) -> Grid:
    return next(iter(notes.fields.values())).grid


def _offset(described: Field, offset: int | Index) -> Index:
    given = offset if isinstance(offset, tuple) else (offset,)
    if len(given) != described.grid.ndim or not all(map(is_whole, given)):
        raise UsageError(
            f"'{described.name}' is indexed by {described.grid.ndim} whole-number offsets from the cell, known before "
            f"the run, got {', '.join(map(shown, given))}."
        )
    return tuple(map(index, given))
