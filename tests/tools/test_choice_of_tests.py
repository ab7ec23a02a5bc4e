"""The cases that `make test` leaves to `make every-case`."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from each_value import covering

TESTS = Path(__file__).parents[1]
NAMES = ("device", "strategy", "depth")


class Item:
    """An item of pytest, as far as it is looked at."""

    def __init__(self, test: str, **params: Any) -> None:
        self.path, self.parent, self.name, self.originalname = Path("tests"), None, test, test
        if params:
            self.callspec = SimpleNamespace(params=params)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_every_value_of_every_parameter_is_in_some_case(counts: list[int]) -> None:
    lines = [[f"{name} {n}" for n in range(count)] for name, count in zip(NAMES, counts, strict=False)]
    items: list[Any] = [Item("test", **dict(zip(NAMES, values, strict=False))) for values in product(*lines)]
    chosen = covering([Item("before"), *items, Item("behind")])  # type: ignore[list-item]
    kept = [item for item in chosen if item.originalname == "test"]  # type: ignore[attr-defined]
    assert [one.originalname for one in chosen][:: len(chosen) - 1] == ["before", "behind"]  # type: ignore[attr-defined]
    assert kept == [item for item in items if item in kept]
    assert len(kept) == max(counts)
    for name, line in zip(NAMES, lines, strict=False):
        assert {item.callspec.params[name] for item in kept} == set(line)  # type: ignore[attr-defined]


def test_long_tests_exist() -> None:
    names = (TESTS / "long_tests.txt").read_text().split()
    assert names == sorted(set(names))
    for name in names:
        file, function = name.split("::")
        assert f"def {function}(" in (TESTS.parent / file).read_text(encoding="utf-8"), name
