"""Junk anywhere in a model file is a sentence, never a traceback: each value replaced by each kind of junk."""

from __future__ import annotations

import copy
import datetime
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from test_modelfile import EVERYTHING

from peergrid.errors import UsageError
from peergrid.io.schema import read_table
from peergrid.models.fdtd.check import check
from peergrid.models.fdtd.model import RadarModel

JUNK: list[Any] = [
    -1, 0, 10**30, 10**400, -1e300, float("nan"), float("inf"), True, "", "x", [], [[]], [1, 2], ["x", "x"], {},
    {"kind": []}, [{}], datetime.date(2026, 1, 1),
]  # fmt: skip
TABLE = tomllib.loads(EVERYTHING)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value, tables and lists included."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def replaced(path: tuple[str | int, ...], junk: Any) -> dict[str, Any]:
    table = copy.deepcopy(TABLE)
    spot: Any = table
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = junk
    return table


def refusal(table: dict[str, Any]) -> str:
    """Why a table is no model; empty if it is one."""
    try:
        check(read_table(RadarModel, table))
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_is_refused_in_one_sentence_or_means_something(junk: Any) -> None:
    sentences = [sentence for path in places(TABLE) if (sentence := refusal(replaced(path, junk)))]
    assert len(sentences) > 20
    assert all(sentence.endswith((".", "?")) and "\n" not in sentence for sentence in sentences)
    assert all(sentence.startswith((*TABLE, "Exactly one of grid.")) for sentence in sentences)
