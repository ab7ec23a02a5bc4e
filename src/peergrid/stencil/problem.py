"""One time step as data: stages of updates over fields, receivers and reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from peergrid.arguments import brief, check_name, is_one_of, is_whole, whole
from peergrid.errors import UsageError
from peergrid.grid import Box, Field, Grid, Index, Signal, Table
from peergrid.grid.box import subtract
from peergrid.stencil.confine import answerable, check_reads, confined
from peergrid.stencil.expr import Expr, Read, reads, shown
from peergrid.stencil.previous import check_previous
from peergrid.stencil.reduction import NORM, PREVIOUS, Reduction, checked, norm_of

Named = TypeVar("Named", Field, Signal, Table)
Part = TypeVar("Part", "Receiver", Reduction)
NO_CHANGE = "no cell would change"
NOTHING = "nothing would change"
A_RECEIVER = "Receivers are given as peergrid.Receiver('r1', 'u', (8, 8))"
A_REDUCTION = "Reductions are given as a function of fields marked with peergrid.reduction, called with its fields"


@dataclass(frozen=True)
class Assignment:
    """`target.next = value` at one cell."""

    target: str
    value: Expr

    @cached_property
    def reads(self) -> frozenset[Read]:
        return frozenset(reads(self.value))


@dataclass(frozen=True, repr=False)
class Update:
    """Assignments made together at every cell of a box; reads give the values before the stage.

    fields, signals, params, tables: those that the expressions name, with their data for `Problem`.
    """

    name: str = field(compare=False)
    box: Box
    assignments: tuple[Assignment, ...]
    fields: tuple[Field, ...] = field(compare=False, repr=False)
    signals: tuple[Signal, ...] = field(compare=False, repr=False, default=())
    params: tuple[tuple[str, float], ...] = field(compare=False, repr=False, default=())
    tables: tuple[Table, ...] = field(compare=False, repr=False, default=())

    def __repr__(self) -> str:
        return f"Update({self.name}: {', '.join(self.targets)} in {self.box.lo} to {self.box.hi})"

    def within(self, box: Box) -> Update:
        """The same update confined to `box`. Raises UsageError if no cell is left."""
        return replace(self, box=confined(self.title, NOTHING, self.box, box))

    @property
    def title(self) -> str:
        return f"Update '{self.name}'"

    @cached_property
    def targets(self) -> tuple[str, ...]:
        return tuple(a.target for a in self.assignments)

    @cached_property
    def reads(self) -> frozenset[Read]:
        return frozenset().union(*(a.reads for a in self.assignments))


@dataclass(frozen=True)
class Stage:
    """Updates made together; those of one field are on boxes that do not overlap. Other cells keep their value."""

    updates: tuple[Update, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.updates, Iterable):
            raise UsageError(f"A stage takes a list of updates, got {self.updates!r:.60}; write [update].")
        object.__setattr__(self, "updates", tuple(self.updates))
        for update in self.updates:
            if not isinstance(update, Update):
                raise UsageError(f"A stage takes a list of updates, got {brief(update)} in it.")
        for one, two in combinations(self.updates, 2):
            shared = set(one.targets) & set(two.targets)
            if shared and one.box.overlaps(two.box):
                raise UsageError(
                    f"Updates '{one.name}' and '{two.name}' of one stage both write '{min(shared)}' in "
                    f"{one.box & two.box}; put them into stages of their own, or on boxes that do not overlap."
                )

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The fields the stage writes, each once, in order of first appearance."""
        return tuple(dict.fromkeys(t for update in self.updates for t in update.targets))

    @cached_property
    def reads(self) -> frozenset[Read]:
        return frozenset().union(*(update.reads for update in self.updates))

    @cached_property
    def readers(self) -> Mapping[str, tuple[Update, ...]]:
        """Of each field that the stage reads the updates that read it, in order."""
        found: dict[str, list[Update]] = {}
        for update in self.updates:
            for name in {read.field for read in update.reads}:
                found.setdefault(name, []).append(update)
        return {name: tuple(updates) for name, updates in found.items()}

    def writers(self, target: str) -> tuple[tuple[Update, Assignment], ...]:
        """The updates that write `target`, each with its assignment."""
        return self._writers.get(target, ())

    @cached_property
    def _writers(self) -> Mapping[str, tuple[tuple[Update, Assignment], ...]]:
        found: dict[str, list[tuple[Update, Assignment]]] = {}
        for update in self.updates:
            for assignment in update.assignments:
                found.setdefault(assignment.target, []).append((update, assignment))
        return {name: tuple(pairs) for name, pairs in found.items()}


@dataclass(frozen=True)
class Receiver:
    """Records the value of `field` in `cell`, an index of the grid, after every step; `name` is its key in `traces`."""

    name: str
    field: str
    cell: Index

    def __post_init__(self) -> None:
        check_name("A receiver", self.name)
        cell = whole((self.cell,) if is_whole(self.cell) else self.cell)
        if cell is None:
            raise UsageError(
                f"Receiver '{self.name}' takes a cell such as (8, 8), whole numbers, got {brief(self.cell)}."
            )
        object.__setattr__(self, "cell", cell)


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A grid, its fields, signals and tables, stages of one step, receivers, reductions: what is computed, not where.

    A field that some stage writes is a *state* field; the others are *coefficients* and never change.
    Updates are cut to the cells in which all their reads lie within the grid and the fields (see `Grid`).
    """

    grid: Grid
    fields: Mapping[str, Field]
    signals: Mapping[str, Signal]
    params: Mapping[str, float]
    tables: Mapping[str, Table]
    stages: tuple[Stage, ...]
    receivers: tuple[Receiver, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    @classmethod
    def of(
        cls,
        stages: Iterable[Stage | Update] | Stage | Update,
        receivers: Iterable[Receiver] | Receiver = (),
        reductions: Iterable[Reduction] | Reduction = (),
    ) -> Problem:
        """The problem whose step consists of these stages, in this order; an update alone is a stage of its own.

        Raises UsageError if names clash, grids differ, or an update or reduction reads or writes outside a confined
        field, or reads so far along a fixed axis that no cell is left, or finds `u.prev` of another step.
        """
        ordered = list(stages) if isinstance(stages, Iterable) else [stages]
        for part in ordered:
            if not isinstance(part, Stage | Update):
                raise UsageError(
                    f"A step is a list of updates and stages, got a {type(part).__name__} in it; call each stencil "
                    "with its fields and numbers, as in heat(u, k=0.2)."
                )
        staged = [s if isinstance(s, Stage) else Stage((s,)) for s in ordered]
        updates = [u for stage in staged for u in stage.updates]
        if not updates:
            raise UsageError("A problem needs at least one update, got none.")
        asked = _listed(reductions, Reduction, A_REDUCTION)
        fields = _by_name(chain.from_iterable(u.fields for u in updates))
        grid = next(iter(fields.values())).grid
        _check_grids(fields.values(), grid)
        _check_earlier(fields)
        cut = tuple(Stage(tuple(_cut(u, grid, fields) for u in stage.updates)) for stage in staged)
        check_previous(cut, grid)
        reduced = _check_reductions(asked, grid, cut, fields)
        more = (f for one in reduced for f in one.fields if f.name not in one.previous)
        fields = _by_name(chain(fields.values(), more))
        _check_known(reduced, fields)
        signals = _by_name(chain.from_iterable(u.signals for u in updates))
        tables = _by_name(chain(*(u.tables for u in updates), *(one.tables for one in reduced)))
        _check_grids(chain(signals.values(), tables.values()), grid)
        _check_signals(u for stage in cut for u in stage.updates)
        params = dict(chain(*(u.params for u in updates), *(one.params for one in reduced)))
        recorded = _listed(receivers, Receiver, A_RECEIVER)
        _check_receivers(recorded, fields)
        return _made_of(grid, fields, signals, params, tables, cut, tuple(recorded), reduced)

    def with_norm(self, name: str) -> Problem:
        """The same problem with one more reduction, `NORM`: the norm of the change of a state field.

        Raises UsageError if a reduction has this name.
        """
        if any(one.name == NORM for one in self.reductions):
            raise UsageError(f"A reduction is called '{NORM}', the name of that which 'norm' adds; give it another.")
        return replace(self, reductions=(*self.reductions, norm_of(self.fields[name])))

    def __repr__(self) -> str:
        extent = "×".join(map(str, self.grid.shape))
        counts = (len(self.stages), "stage"), (len(self.receivers), "receiver"), (len(self.reductions), "reduction")
        parts = [f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count]
        return f"Problem({', '.join(self.state)} on {extent} {self.grid.dtype}; {', '.join(parts)})"

    @cached_property
    def state(self) -> tuple[str, ...]:
        """The fields that change, in order of first writing."""
        return tuple(dict.fromkeys(t for stage in self.stages for t in stage.targets))

    @cached_property
    def coefficients(self) -> tuple[str, ...]:
        """The fields that are only read."""
        return tuple(name for name in self.fields if name not in self.state)

    def __reduce__(self) -> tuple[Callable[..., Problem], tuple[Any, ...]]:
        """For pickle and copy: the parts of the problem, without cached results."""
        named = dict(self.fields), dict(self.signals), dict(self.params), dict(self.tables)
        return _made_of, (self.grid, *named, self.stages, self.receivers, self.reductions)

    @cached_property
    def answers(self) -> dict[object, Callable[..., Any]]:
        """Cached results of functions of this problem, see `remember`."""
        return {}

    @cached_property
    def travelling(self) -> bool:
        """True if some signal differs from cell to cell."""
        return any(signal.slopes for signal in self.signals.values())

    @cached_property
    def receiver_cells(self) -> NDArray[np.int64]:
        """The cells of all receivers, shape (receivers, axes)."""
        cells = [receiver.cell for receiver in self.receivers]
        return np.array(cells, dtype=np.int64).reshape(len(cells), self.grid.ndim)

    def receivers_in(self, box: Box, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those of some receivers that lie in a box, by their indices."""
        return tuple(number for number in numbers if self.receivers[number].cell in box)

    def receiver_boxes(self, numbers: Iterable[int]) -> tuple[Box, ...]:
        """The cells of some receivers."""
        return tuple(Box.cell(self.receivers[number].cell) for number in numbers)

    @cached_property
    def receivers_of(self) -> Mapping[str, NDArray[np.int64]]:
        """Of each recorded field the indices of its receivers, in order."""
        found: dict[str, list[int]] = {}
        for number, receiver in enumerate(self.receivers):
            found.setdefault(receiver.field, []).append(number)
        return {name: np.array(numbers, dtype=np.int64) for name, numbers in found.items()}

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return 4 if self.grid.dtype == "float32" else 8


Step = Problem | Iterable[Stage | Update] | Stage | Update
"""The input of a run: a problem, or updates and stages in order."""


def _listed(given: object, kind: type[Part], expected: str) -> list[Part]:
    """One value of a kind, or several, as a list."""
    if isinstance(given, kind):
        return [given]
    if not isinstance(given, Iterable):
        raise UsageError(f"{expected}, got {brief(given)}.")
    return list(given)


def problem_of(step: Step) -> Problem:
    """A problem, or that made of updates and stages."""
    return step if isinstance(step, Problem) else Problem.of(step)


def _made_of(
    grid: Grid,
    fields: dict[str, Field],
    signals: dict[str, Signal],
    params: dict[str, float],
    tables: dict[str, Table],
    stages: tuple[Stage, ...],
    receivers: tuple[Receiver, ...],
    reductions: tuple[Reduction, ...],
) -> Problem:
    """A problem with read-only mappings."""
    named = MappingProxyType(fields), MappingProxyType(signals), MappingProxyType(params), MappingProxyType(tables)
    return Problem(grid, *named, stages, receivers, reductions)


def add_by_name(found: dict[str, Named], item: Named) -> None:
    """Add what has a name to those found. Raises UsageError if something else has the name."""
    known = found.setdefault(item.name, item)
    if known is not item and not _same(known, item):
        raise UsageError(f"Two different things are called '{item.name}'; give each its own name.")


def _by_name(items: Iterable[Named]) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for item in items:
        add_by_name(found, item)
    return found


def _same(one: Field | Signal | Table, two: Field | Signal | Table) -> bool:
    if isinstance(one, Field) and isinstance(two, Field):
        return one == two and one.init is two.init and one.earlier is two.earlier
    if isinstance(one, Table) and isinstance(two, Table):
        return one == two and one.values is two.values
    return isinstance(one, Signal) and isinstance(two, Signal) and one == two and one.samples is two.samples


def _check_grids(found: Iterable[Field | Signal | Table], grid: Grid) -> None:
    for one in found:
        if one.grid != grid:
            raise UsageError(
                f"All fields, signals and tables of a problem share one grid; '{one.name}' is on {one.grid}."
            )


def _check_earlier(fields: Mapping[str, Field]) -> None:
    for name, one in fields.items():
        if one.earlier is not None and f"{name}{PREVIOUS}" not in fields:
            raise UsageError(
                f"'{name}' is given values one step before, but no stencil reads '{name}{PREVIOUS}'; leave out 'prev'."
            )


def _cut(update: Update, grid: Grid, fields: Mapping[str, Field]) -> Update:
    """The update on the cells whose reads do not leave the grid through a fixed edge."""
    cut = replace(update, box=answerable(update.title, NO_CHANGE, update.box, update.reads, grid, fields))
    if not cut.box.empty:
        _check_targets(cut, fields)
        check_reads(cut.title, cut.box, cut.reads, grid, fields)
    return cut


def _check_targets(update: Update, fields: Mapping[str, Field]) -> None:
    for target in update.targets:
        if not fields[target].box.covers(update.box):
            raise UsageError(
                f"Update '{update.name}' writes '{target}' on {update.box}, but the field exists only on "
                f"{fields[target].box}; confine the update with .within(box)."
            )
        if not fields[target].full:
            raise UsageError(f"Update '{update.name}' writes the profile '{target}', which varies along one axis only.")


def _check_reductions(
    given: Iterable[Reduction], grid: Grid, stages: Iterable[Stage], fields: Mapping[str, Field]
) -> tuple[Reduction, ...]:
    """The reductions, confined to the cells on which they can be computed."""
    found: dict[str, Reduction] = {}
    kept = _previous_fields(stages, fields)
    for one in given:
        if not isinstance(one, Reduction):
            raise UsageError(f"{A_REDUCTION}, got {shown(one)}.")
        _check_grids(one.fields, grid)
        if one.name in found:
            raise UsageError(f"Two reductions are called '{one.name}'; give each its own name.")
        apart = (f.name for f in one.fields if f.name.endswith(PREVIOUS) and f.name not in kept)
        found[one.name] = checked(one, grid, apart)
    return tuple(found.values())


def _check_known(reduced: Iterable[Reduction], fields: Mapping[str, Field]) -> None:
    """Raise UsageError if a reduction reads the value before the step of a field that there is not."""
    for one in reduced:
        for alias, name in ((alias, one.source(alias)[0]) for alias in sorted(one.previous)):
            if name not in fields:
                raise UsageError(f"{one.title} reads '{alias}', but no stencil has '{name}'; let one keep the value.")


def _previous_fields(stages: Iterable[Stage], fields: Mapping[str, Field]) -> frozenset[str]:
    """The fields such as 'u.prev', which after a step have the values of another field before it."""
    writers: dict[str, list[tuple[int, Update]]] = {}
    for number, stage in enumerate(stages):
        for update in stage.updates:
            for target in update.targets:
                writers.setdefault(target, []).append((number, update))
    return frozenset(
        name
        for name in writers
        if name.endswith(PREVIOUS)
        and writers[name] == writers.get(name.removesuffix(PREVIOUS))
        and len({number for number, _ in writers[name]}) == 1
        and _begins_as_kept(fields[name.removesuffix(PREVIOUS)], [update.box for _, update in writers[name]])
    )


def _begins_as_kept(described: Field, changed: Iterable[Box]) -> bool:
    """True if the values one step before the first differ from these only in cells that change."""
    before = described.earlier
    return before is None or all(
        np.array_equal(before.values(box), described.values(box)) for box in subtract((described.box,), *changed)
    )


def _check_signals(updates: Iterable[Update]) -> None:
    """Raise UsageError if an update reads a signal at places that it does not have."""
    for update in updates:
        for signal in (one for one in update.signals if one.slopes and not update.box.empty):
            low, high = signal.places(update.box)
            if low < 0 or high >= signal.samples.shape[1]:
                raise UsageError(
                    f"{update.title} reads the signal '{signal.name}' at places {low} to {high} of {update.box}, which "
                    f"has places 0 to {signal.samples.shape[1] - 1}; confine the update, or give it more."
                )


def _check_receivers(receivers: Iterable[Receiver], fields: Mapping[str, Field]) -> None:
    seen: set[str] = set()
    for receiver in receivers:
        if not isinstance(receiver, Receiver):
            raise UsageError(f"{A_RECEIVER}, got {brief(receiver)}.")
        if receiver.name in seen:
            raise UsageError(f"Two receivers are called '{receiver.name}'; give each its own name.")
        seen.add(receiver.name)
        _check_receiver(receiver, fields)


def _check_receiver(receiver: Receiver, fields: Mapping[str, Field]) -> None:
    if not is_one_of(receiver.field, fields):
        raise UsageError(
            f"Receiver '{receiver.name}' records a field of the problem ({', '.join(sorted(fields))}), got "
            f"{brief(receiver.field)}."
        )
    box = fields[receiver.field].box
    if len(receiver.cell) != box.ndim or receiver.cell not in box:
        raise UsageError(f"Receiver '{receiver.name}' lies at {receiver.cell}, outside '{receiver.field}' on {box}.")
