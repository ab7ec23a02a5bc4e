"""Variants that differ in their places in the struct alone, as the layers at both ends of an axis: one function."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from peergrid.codegen.cuda.common.arguments import Arguments, Entry
from peergrid.codegen.cuda.onestep.body import Body
from peergrid.codegen.cuda.onestep.groups import SOURCE, Group
from peergrid.codegen.cuda.onestep.regions import Variant
from peergrid.stencil.expr import Expr, Now, Param, Read, ordered
from peergrid.stencil.program import composed


@dataclass(frozen=True)
class Alike:
    """Some variants; entries: of each one, in the same order, its fields and what else has a place in the struct."""

    variants: tuple[Variant, ...]
    entries: tuple[tuple[Entry, ...], ...]

    @property
    def varying(self) -> tuple[tuple[Entry, ...], ...]:
        """Of each variant the entries that are not the same in all."""
        places = [place for place, found in enumerate(zip(*self.entries, strict=True)) if len(set(found)) > 1]
        return tuple(tuple(found[place] for place in places) for found in self.entries)


def alike(arguments: Arguments, group: Group, variants: Iterable[Variant]) -> tuple[Alike, ...]:
    """The variants of a group, those together that are alike, in the order of the first of each."""
    forms: dict[Hashable, list[tuple[Variant, tuple[Entry, ...]]]] = {}
    for variant in variants:
        form, entries = _form(arguments, group, variant)
        forms.setdefault(form, []).append((variant, entries))
    return tuple(
        Alike(tuple(variant for variant, _ in some), tuple(entries for _, entries in some)) for some in forms.values()
    )


def _form(arguments: Arguments, group: Group, variant: Variant) -> tuple[Hashable, tuple[Entry, ...]]:
    """The arithmetic of a variant with numbers in place of its entries, and these."""
    problem, values = arguments.problem, Body(arguments, variant).values
    targets = [Entry("field", member.of(problem).target) for member in variant.members]
    stored = [Entry("field", name) for name in variant.stored]
    named = {part: entry for part in ordered(values) if (entry := _entry(part)) is not None}
    fields = dict.fromkeys((*targets, *named.values(), *stored))
    pitches = [arguments.pitches(one.name) for one in fields if one.kind == "field" and problem.fields[one.name].full]
    scratch = [
        Entry("scratch", str(version)) for entry in fields for version in _versions(group, entry) if version >= 0
    ]
    entries = tuple(dict.fromkeys((*fields, *pitches, *scratch)))
    number = {entry: str(place) for place, entry in enumerate(entries)}
    numbered: dict[Expr, Expr] = {part: _numbered(part, number[entry]) for part, entry in named.items()}
    form = (
        tuple(composed(value, numbered) for value in values),
        tuple(number[target] for target in targets),
        frozenset(number[entry] for entry in stored),
        tuple(number[entry] for entry in (*pitches, *scratch)),
        tuple(_kind(arguments, group, entry) for entry in entries),
    )
    return form, entries


def _entry(part: Expr) -> Entry | None:
    """The entry that an expression names."""
    match part:
        case Read(field=name):
            return Entry("field", name)
        case Now(signal=name):
            return Entry("signal", name)
        case Param(key=name):
            return Entry("param", name)
    return None


def _numbered(part: Expr, number: str) -> Expr:
    """The expression with a number in place of what it names."""
    match part:
        case Read(offset=offset):
            return Read(number, offset)
        case Now():
            return Now(number)
    return Param(number)


def _versions(group: Group, entry: Entry) -> tuple[int, ...]:
    """The versions of a field that the group reads and leaves; SOURCE alone of what no group writes."""
    if entry.kind != "field":
        return ()
    return group.found(entry.name), group.after.get(entry.name, SOURCE)


def _kind(arguments: Arguments, group: Group, entry: Entry) -> Hashable:
    """The properties of an entry that texts depend on, beside its place."""
    problem = arguments.problem
    if entry.kind == "field":
        return problem.fields[entry.name].axes, tuple(min(version, 0) for version in _versions(group, entry))
    if entry.kind == "signal":
        signal = problem.signals[entry.name]
        return signal.slopes, signal.first, signal.samples.shape[1:]
    return entry.kind
