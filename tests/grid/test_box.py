"""The algebra of boxes, against plain sets of cells."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.grid import Box, subtract
from peergrid.grid.box import disjoint, intersect


@st.composite
def boxes(draw: st.DrawFn, axes: int = 2) -> Box:
    """Boxes around the origin, some of them empty."""
    lo = draw(st.tuples(*[st.integers(-4, 4)] * axes))
    return Box(lo, tuple(a + draw(st.integers(0, 4)) for a in lo))


def cells(*some: Box) -> set[tuple[int, ...]]:
    return {cell for box in some for cell in box.cells()}


@given(boxes(), boxes())
def test_intersection_difference_and_cover_are_those_of_sets(one: Box, two: Box) -> None:
    assert cells(one & two) == cells(one) & cells(two)
    assert cells(*(one - two)) == cells(one) - cells(two)
    assert sum(piece.size for piece in one - two) == len(cells(one) - cells(two)), "the pieces are disjoint"
    assert one.overlaps(two) == bool(cells(one) & cells(two))
    assert one.covers(two) == (cells(two) <= cells(one))


@given(boxes(3), boxes(3))
def test_a_box_holds_those_of_many_indices_that_are_in_it(one: Box, two: Box) -> None:
    indices = list(two.cells())
    found = one.holds(np.array(indices, dtype=np.int64).reshape(-1, 3))
    assert found.tolist() == [index in one for index in indices]


@given(boxes(3), boxes(3))
def test_the_hull_is_the_smallest_box_around_both(one: Box, two: Box) -> None:
    both = cells(one, two)
    hull = one.hull(two)
    assert cells(hull) >= both
    if both:
        lo, hi = np.min(list(both), axis=0), np.max(list(both), axis=0) + 1
        assert hull == Box(tuple(lo.tolist()), tuple(hi.tolist()))


@given(st.lists(boxes(), max_size=3), st.lists(boxes(), max_size=3))
def test_subtract_takes_all_cuts_from_every_box(some: list[Box], cuts: list[Box]) -> None:
    assert cells(*subtract(some, *cuts)) == cells(*some) - cells(*cuts)


@given(st.lists(boxes(), max_size=3), st.lists(boxes(), max_size=3))
def test_intersect_finds_what_boxes_have_in_others(some: list[Box], others: list[Box]) -> None:
    found = intersect(some, *others)
    assert cells(*found) == cells(*some) & cells(*others)
    assert not any(piece.empty for piece in found)


def test_thousands_of_cells_are_subtracted_in_a_second() -> None:
    whole = Box((0, 0, 0), (20, 20, 20))
    cut = [cell for number, cell in enumerate(whole.cells()) if number % 5 < 2]
    start = perf_counter()
    found = subtract((whole,), *(Box(cell, tuple(at + 1 for at in cell)) for cell in cut))
    assert perf_counter() - start < 10, "with every piece compared to every cut it takes a minute"
    assert cells(*found) == cells(whole) - set(cut)


@given(st.lists(boxes(), max_size=4))
def test_disjoint_boxes_have_each_cell_once_and_none_is_empty(some: list[Box]) -> None:
    found = disjoint(some)
    assert cells(*found) == cells(*some)
    assert sum(piece.size for piece in found) == len(cells(*some))
    assert not any(piece.empty for piece in found)


@given(boxes(3))
def test_size_shape_and_membership(box: Box) -> None:
    inside = cells(box)
    assert box.size == len(inside)
    assert box.empty == (not inside)
    assert all(cell in box for cell in inside)
    assert box.hi not in box
    assert "anything else" not in box


def test_moving_and_growing() -> None:
    box = Box((1, 2), (3, 5))
    assert box.shift((1, -2)) == Box((2, 0), (4, 3))
    assert box.grow((1, 0), (0, 2)) == Box((0, 2), (3, 7))
    assert box.with_axis(1, 0, 1) == Box((1, 0), (3, 1))
    assert box.slices((1, 1)) == (slice(0, 2), slice(1, 4))
    assert Box.cell((4, 5)) == Box((4, 5), (5, 6))
    assert str(box) == "[1,3)×[2,5)"


def test_corners_of_different_length_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^A box takes two corners .*, got \(1,\) and \(2, 3\)\.$"):
        Box((1,), (2, 3))


def test_cells_and_shapes_come_from_anything_in_order() -> None:
    assert Box.cell(n // 2 for n in (4, 6)) == Box.cell(np.array([2, 3])) == Box((2, 3), (3, 4))
    assert Box.of(range(2, 4)) == Box.of([2, 3]) == Box((0, 0), (2, 3))
