"""A frozen dataclass as TOML that `io.schema` reads back: the keys whose values are not the defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, is_dataclass
from typing import Any

from peergrid.io.schema import keys

WIDEST = 100
"""Characters of a list of lists before each has a line of its own."""


def document(value: Any) -> str:
    """The text of a file: a table for each field that is a dataclass, a list of tables for each tuple of them."""
    return "\n".join(_tables(plain(value)))


def plain(value: Any) -> Any:
    """A value as TOML has it: dataclasses as mappings without defaults, tuples as lists."""
    if is_dataclass(value):
        own = {key: getattr(value, one.name) for key, one in keys(value).items() if not _usual(value, one)}
        kind = getattr(type(value), "kind", None)
        head = {"kind": kind} if isinstance(kind, str) and "kind" not in keys(value) else {}
        return head | {key: plain(one) for key, one in own.items()}
    return [plain(one) for one in value] if isinstance(value, tuple | list) else value


def _usual(value: Any, one: Field[Any]) -> bool:
    """True if a field has its default value."""
    default = one.default_factory() if one.default_factory is not MISSING else one.default
    return bool(default is not MISSING and getattr(value, one.name) == default)


def _tables(tables: Mapping[str, Any]) -> Iterator[str]:
    for name, value in tables.items():
        for head, table in (
            [(f"[{name}]", value)] if isinstance(value, Mapping) else [(f"[[{name}]]", v) for v in value]
        ):
            yield head
            yield from (f"{key} = {_text(entry)}" for key, entry in table.items())
            yield ""


def _text(value: Any) -> str:
    """A value on one line; a long list of lists or tables with one line for each."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_text(entry)}' for key, entry in value.items())} }}"
    if isinstance(value, float):
        short = f"{value:.6g}"
        return short if float(short) == value and "e" in short else repr(value)
    if not isinstance(value, list):
        return repr(value)
    entries = [_text(entry) for entry in value]
    if sum(map(len, entries)) > WIDEST and isinstance(value[0], list | Mapping):
        return "[\n" + "".join(f"    {entry},\n" for entry in entries) + "]"
    return f"[{', '.join(entries)}]"
