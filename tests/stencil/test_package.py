"""The name `peergrid.stencil` is the decorator and the package at once."""

from __future__ import annotations

import pytest

import peergrid
import peergrid.stencil.trace as trace
from peergrid.errors import UsageError


def test_the_decorator_does_not_hide_its_package() -> None:
    @peergrid.stencil
    def keep(u: peergrid.Cell) -> None:
        u.next[0] = u[0]

    assert type(keep) is trace.Stencil
    assert peergrid.stencil.trace is trace  # type: ignore[attr-defined]


def test_the_decorator_is_written_without_parentheses() -> None:
    with pytest.raises(UsageError, match=r"^A stencil is made of a function of one cell, got none; write @stencil "):
        peergrid.stencil()
