"""Of a test with several parameters, some cases that together take every value of each parameter."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import pytest

Values = frozenset[tuple[str, int]]


def covering(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Of all cases of a test first that with the most values that are new, and so on until none is; in order."""
    tests: dict[Hashable, dict[pytest.Item, Values]] = {}
    for item in items:
        test = item.path, item.parent, getattr(item, "originalname", item.name)
        tests.setdefault(test, {})[item] = _values_of(item)
    return [item for cases in tests.values() for item in _covering(cases)]


def _values_of(item: pytest.Item) -> Values:
    """The parameters of a case, each with the identity of its value, which cases share."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return frozenset((name, id(value)) for name, value in params.items())


def _covering(cases: dict[pytest.Item, Values]) -> list[pytest.Item]:
    left = set().union(*cases.values())
    chosen = {next(iter(cases))}
    left -= cases[next(iter(cases))]
    while left:
        best = max(cases, key=lambda item: len(cases[item] & left))
        chosen.add(best)
        left -= cases[best]
    return [item for item in cases if item in chosen]
