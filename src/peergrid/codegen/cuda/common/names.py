"""Identifiers of CUDA C++ for what users named: fields, updates, parameters, signals; lists and truth values."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    R C cell at sample now fma min max linux unix NULL INFINITY NAN EOF errno assert
"""
RESERVED = frozenset(_WORDS.split())
"""Words of the language, macros, and what generated text itself calls by these names."""


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """An identifier for each name, close to it; all of them and those `taken` are different, also behind `next_`."""
    used, found = {*RESERVED, *taken}, dict[str, str]()
    for name in names:
        start = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", name)).rstrip("_") or "_"
        wanted = start if re.match(r"[A-Za-z]", start) else f"f{start}"
        while wanted in used or f"next_{wanted}" in used:
            wanted += "_"
        found[name] = wanted
        used |= {wanted, f"next_{wanted}"}
    return found


def listed(parts: Iterable[object], within: str = "") -> str:
    """Parts of a list in C++, within braces if they are given."""
    text = ", ".join(map(str, parts))
    return f"{within[0]}{text}{within[1]}" if within else text


def flags(values: Iterable[bool]) -> str:
    """A list of truth values in C++."""
    return listed(map(flag, values))


def flag(value: object) -> str:
    """A truth value in C++."""
    return "true" if value else "false"


def letters(name: str) -> str:
    """A name with `_` in place of what identifiers may not have."""
    return re.sub(r"[^0-9A-Za-z_]", "_", name)
