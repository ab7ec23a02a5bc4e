"""From the tables of a TOML file to frozen dataclasses: their type hints are the schema.

Every fault is a `UsageError` of one sentence: the key's path, what was expected, what came, what to do. Tables and
entries of a list are counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import inf
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from peergrid.errors import UsageError
from peergrid.io.rule import LONGEST, Rule, shown

T = TypeVar("T")


def read_table(kind: Callable[..., T], table: Mapping[str, Any], path: str = "") -> T:
    """The dataclass `kind` from a table; `path` is where the table stands in the file.

    A field's key is its name, or `metadata["key"]`; one with `metadata["place"]`, a function of the path, has none, and
    gets the value of that. Raises UsageError for unknown, missing or wrong values.
    """
    known = keys(kind)
    tag = {"kind"} if hasattr(kind, "kind") else set()
    for key in table:
        if key not in known.keys() | tag:
            raise UsageError(_unknown(key, list(known), path))
    hints = _hints(kind)
    places = [one for one in fields(kind) if "place" in one.metadata]  # type: ignore[arg-type]
    values: dict[str, Any] = {one.name: one.metadata["place"](path) for one in places}
    for key, one in known.items():
        place = f"{path}.{key}" if path else key
        if key in table:
            values[one.name] = read_value(hints[one.name], table[key], place)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise UsageError(f"{place} is expected to be {describe(hints[one.name])}, but is missing; add it.")
    return kind(**values)


def keys(kind: Any) -> dict[str, Field[Any]]:
    """The keys of a dataclass's table, each with its field."""
    return {one.metadata.get("key", one.name): one for one in fields(kind) if "place" not in one.metadata}


def read_value(hint: Any, value: object, path: str) -> Any:
    """A value of a type hint: numbers, texts, literals, tuples, dataclasses, unions and `Annotated` rules of those."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _ruled(hint, value, path)
    if origin is Literal:
        return _literal(hint, value, path)
    if origin is tuple:
        return _tuple(hint, value, path)
    if origin in (Union, UnionType):
        return _union(hint, value, path)
    if is_dataclass(hint):
        return _table(hint, value, path)
    return _plain(hint, value, path)


def describe(hint: Any) -> str:
    """A type hint in words that complete 'is expected to be ...'."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _described_rule(hint)
    if origin is Literal:
        return either([_show(part) for part in parts])
    if origin is tuple and parts[-1] is Ellipsis:
        return f"a list, each entry {describe(parts[0])}"
    if origin is tuple:
        return f"a list of {len(parts)}, each {describe(parts[0])}"
    if origin in (Union, UnionType):
        if _tagged(hint):
            return "a table with a kind"
        return either([describe(part) for part in parts if part is not NoneType])
    if is_dataclass(hint):
        return "a table"
    return {str: "text", bool: "true or false", int: "a whole number", float: "a number"}[hint]


def either(parts: Sequence[str]) -> str:
    """'a', 'a or b', 'a, b or c'."""
    return " or ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _described_rule(hint: Any) -> str:
    rule: Rule = get_args(hint)[1]
    return rule.expected


def _ruled(hint: Any, value: object, path: str) -> Any:
    inner, *rules = get_args(hint)
    nested = get_origin(inner) is tuple
    try:
        read = read_value(inner, value, path)
    except UsageError:
        if nested and isinstance(value, Sequence) and not isinstance(value, str):
            raise
        raise _wrong(path, hint, value) from None
    for rule in rules:
        if not rule.holds(read):
            raise UsageError(f"{path} is expected to be {rule.expected}, got {_show(value)}; correct it.")
    return read


def _literal(hint: Any, value: object, path: str) -> Any:
    allowed = get_args(hint)
    if not isinstance(value, bool) and isinstance(value, str | int) and value in allowed:
        return value
    close = get_close_matches(value, [a for a in allowed if isinstance(a, str)], n=1) if isinstance(value, str) else []
    advice = f"did you mean {_show(close[0])}?" if close else "use one of them."
    raise UsageError(f"{path} is expected to be {describe(hint)}, got {_show(value)}; {advice}")


def _table(hint: Any, value: object, path: str) -> Any:
    if isinstance(value, Mapping):
        return read_table(hint, value, path)
    if isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
        raise UsageError(f"{path} is expected to be one table, got a list of {len(value)}; write [{path}] once.")
    raise _wrong(path, hint, value)


def _of_tables(hint: Any) -> bool:
    return is_dataclass(hint) or bool(_tagged(hint))


def _tuple(hint: Any, value: object, path: str) -> tuple[Any, ...]:
    parts = get_args(hint)
    if isinstance(value, Mapping) and _of_tables(parts[0]):
        raise UsageError(f"{path} is expected to be a list of tables, got a single one; write [[{path}]].")
    if not isinstance(value, list):
        raise _wrong(path, hint, value)
    if parts[-1] is Ellipsis:
        return tuple(read_value(parts[0], entry, f"{path}[{n}]") for n, entry in enumerate(value, start=1))
    if len(value) != len(parts):
        raise UsageError(f"{path} is expected to be {describe(hint)}, got {len(value)} of them; give {len(parts)}.")
    return tuple(
        read_value(part, entry, f"{path}[{n}]")
        for n, (part, entry) in enumerate(zip(parts, value, strict=True), start=1)
    )


def _union(hint: Any, value: object, path: str) -> Any:
    tagged = _tagged(hint)
    if tagged:
        return _variant(tagged, value, path)
    parts = [part for part in get_args(hint) if part is not NoneType]
    if len(parts) == 1:
        return read_value(parts[0], value, path)
    lists = [part for part in parts if get_origin(part) is tuple]
    if isinstance(value, list) and len(lists) == 1:
        return read_value(lists[0], value, path)
    tables = [part for part in parts if is_dataclass(part)]
    if isinstance(value, Mapping) and len(tables) == 1:
        return read_value(tables[0], value, path)
    for part in parts:
        try:
            return read_value(part, value, path)
        except UsageError:
            continue
    raise _wrong(path, hint, value)


def _tagged(hint: Any) -> dict[str, type[Any]]:
    """The dataclasses of a union by their `kind`; empty for another union."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    return {part.kind: part for part in parts} if all(is_dataclass(p) and hasattr(p, "kind") for p in parts) else {}


def _variant(kinds: Mapping[str, type[Any]], value: object, path: str) -> Any:
    if not isinstance(value, Mapping):
        raise UsageError(f"{path} is expected to be a table with a kind, got {_show(value)}; write {{ kind = ... }}.")
    expected = f"{path}.kind is expected to be {either([_show(k) for k in kinds])}"
    if "kind" not in value:
        raise UsageError(f"{expected}, but is missing; add it.")
    name = value["kind"]
    if not isinstance(name, str) or name not in kinds:
        close = get_close_matches(str(name), list(kinds), n=1)
        advice = f"did you mean {_show(close[0])}?" if close else "use one of them."
        raise UsageError(f"{expected}, got {_show(name)}; {advice}")
    return read_table(kinds[name], value, path)


def _plain(hint: Any, value: object, path: str) -> Any:
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _as_float(value)
    if hint in (int, bool, str) and type(value) is hint:
        return value
    raise _wrong(path, hint, value)


def _as_float(value: int | float) -> float:
    """A number as float; a whole number too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


@lru_cache(maxsize=64)
def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _wrong(path: str, hint: Any, value: object) -> UsageError:
    return UsageError(f"{path} is expected to be {describe(hint)}, got {_show(value)}; correct it.")


def _unknown(key: str, known: Sequence[str], path: str) -> str:
    place = f"{path}.{shown(key)}" if path else shown(key)
    close = get_close_matches(key, known, n=1) if len(key) < LONGEST else []
    advice = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}."
    return f"{place} is no known key; {advice}"


def _show(value: object) -> str:
    """A value as TOML writes it, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{shown(value)}'"
    if isinstance(value, int) and abs(value) >= 10**60:
        return "a whole number of more than 60 digits"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return f"[{', '.join(_show(entry) for entry in value[:4])}{', ...' if len(value) > 4 else ''}]"
    return str(value)
