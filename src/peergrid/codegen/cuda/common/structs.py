"""Structs of constants in C++: a plan's values under their names, of which each says its type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from textwrap import wrap

from peergrid.codegen.cuda.common.names import flag, listed

WIDTH = 116  # characters of a line within a struct


def struct(name: str, *members: str) -> str:
    """A struct with some members, each of whole lines."""
    lines = (f"  {line}" if line else line for member in members for line in member.splitlines())
    return "\n".join((f"struct {name} {{", *lines, "};\n"))


def constants(kind: str = "", **values: object) -> str:
    """Constants in order: whole numbers (texts of such, too), truth values, and arrays of these, each in a line.

    kind: the type of what arrays contain, if it is a struct, whose values are tuples.
    """
    lines, plain = list[str](), {name: _plain(value) for name, value in values.items()}
    for (element, array), group in groupby(plain.items(), key=lambda named: _sort(named, kind)):
        declared = listed(f"{name}{_extent(value, kind)} = {_text(value)}" for name, value in group)
        text = f"static constexpr {element} {declared};"
        lines += [text] if array else wrap(text, WIDTH, subsequent_indent="    ")
    return "\n".join(lines)


def numbers(**values: Iterable[object]) -> str:
    """Lists of constants as types, to be written out at compile time."""
    return "\n".join(f"using {name} = Numbers<{listed(items)}>;" for name, items in values.items())


def plan(name: str, stages: Iterable[Iterable[str]], *members: str) -> str:
    """A plan: a struct for each of its stages, of which the members are given, and its own, which finds a stage by its
    number.
    """
    structs = {f"{name}Stage{number}": given for number, given in enumerate(stages)}
    chosen = f"template <int NUMBER> using Stage = Pick<NUMBER, {listed(structs) or 'void'}>;"
    texts = (struct(stage, *given) for stage, given in structs.items())
    return "\n".join((*texts, struct(name, *members, chosen)))


def _plain(value: object) -> object:
    """A value, or an array as tuples."""
    return value if isinstance(value, str) or not isinstance(value, Iterable) else tuple(map(_plain, value))


def _sort(named: tuple[str, object], kind: str) -> tuple[str, str]:
    """The type of a constant's elements, and its name if it is an array."""
    name, value = named
    return kind or _kind(value), name if isinstance(value, tuple) else ""


def _kind(value: object) -> str:
    if isinstance(value, tuple):
        return _kind(value[0])
    return "bool" if isinstance(value, bool) else "int"


def _extent(value: object, kind: str) -> str:
    """The extents of an array, in brackets."""
    if not isinstance(value, tuple):
        return ""
    return f"[{len(value)}]" + ("" if kind else _extent(value[0], kind))


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return listed(map(_text, value), "{}")
    return flag(value) if isinstance(value, bool) else str(value)
