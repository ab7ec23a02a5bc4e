"""Grids and fields: what they mean at their edges, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.grid import Box, Grid


@given(st.integers(1, 7), st.integers(-9, 9), st.integers(0, 9), st.integers(-9, 9), st.integers(0, 20))
def test_images_are_all_periodic_copies_in_sight(extent: int, a: int, length: int, low: int, width: int) -> None:
    grid = Grid(extent, "periodic")
    box, window = Box((a,), (a + min(length, extent),)), Box((low,), (low + width,))
    seen = [cell for part in grid.images(box, window) for cell in part.cells()]
    owners = {i % extent for (i,) in box.cells()}
    assert sorted(seen) == [(i,) for (i,) in window.cells() if i % extent in owners]
    for image, shift in grid.shifted_images(box, window):
        assert image == box.shift(shift)
        assert shift[0] % extent == 0


def test_clip_cuts_at_edges_that_do_not_close() -> None:
    grid = Grid((4, 5, 6), ("fixed", "periodic", "reflecting"))
    assert grid.clip(Box((-2, -2, -2), (9, 9, 9))) == Box((0, -2, 0), (4, 9, 6))
    assert grid.periodic == (False, True, False)


def test_a_number_means_one_axis_and_one_boundary_means_all() -> None:
    assert Grid(5) == Grid((5,), ("fixed",))
    assert Grid((2, 3), "periodic").boundary == ("periodic", "periodic")


def test_fields_hold_a_number_an_array_or_a_profile() -> None:
    grid = Grid((2, 3), dtype="float64")
    np.testing.assert_array_equal(grid.field("u", 1.5).global_array(), np.full((2, 3), 1.5))
    np.testing.assert_array_equal(grid.profile("p", 1, [1, 2, 3]).global_array(), [1, 2, 3])
    small = grid.field("v", [[1.0, 2.0]], within=Box((1, 0), (2, 2)))
    np.testing.assert_array_equal(small.global_array(), [[1.0, 2.0]])
    assert small.full
    assert not grid.profile("p", 1, [1, 2, 3]).full
    assert grid.signal("s", 3).samples.tolist() == [3.0]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Grid(()), "A grid's shape is expected to be one to three positive integers, got ()."),
        (lambda: Grid((3, 0)), "A grid's shape is expected to be one to three positive integers, got (3, 0)."),
        (lambda: Grid(True), "A grid's shape is expected to be one to three positive integers, got True."),
        (lambda: Grid((3, 3), ("fixed",)), "A grid of 2 axes takes one boundary or 2, got 1."),
        (lambda: Grid(3, "open"), "A boundary is 'fixed', 'periodic' or 'reflecting', got 'open'."),
        (lambda: Grid(3, dtype="int8"), "A grid's dtype is 'float32' or 'float64', got 'int8'."),
        (lambda: Grid(3).field("u", [1, 2]), "'u' takes a number or an array of shape (3,), got shape (2,)."),
        (
            lambda: Grid(3).field("u", within=Box((1,), (4,))),
            "Field 'u' is confined to [1,4), which is not inside the grid [0,3).",
        ),
        (
            lambda: Grid(3, "periodic").field("u", within=Box((0,), (2,))),
            "Field 'u' cannot be confined along the periodic axis 0: [0,2).",
        ),
        (lambda: Grid((3.0, 2)), "A grid's shape is expected to be one to three positive integers, got (3.0, 2)."),  # type: ignore[arg-type]
        (lambda: Grid(3, dtype=None), "A grid's dtype is 'float32' or 'float64', got None."),
        (lambda: Grid(3).field("u", 1j), "'u' takes real numbers, got a complex of dtype complex128."),
        (lambda: Grid(2).field("u", [1, [2]]), "'u' takes numbers in rows of equal lengths, got [1, [2]]."),  # type: ignore[list-item]
        (lambda: Grid(3).field("u", {}), "'u' takes real numbers, got a dict of dtype object."),  # type: ignore[arg-type]
        (
            lambda: Grid(3).field("u", [1, 2, 1e39]),
            "'u' takes numbers that float32 can hold, got larger ones; scale them.",
        ),
        (lambda: Grid(3).profile("p", 1, [1]), "Profile 'p' names axis 1; the grid has axes 0 to 0."),
        (lambda: Grid(3).signal("s", [[1.0]]), "Signal 's' takes a one-dimensional array, got shape (1, 1)."),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert str(refused.value) == sentence


def test_a_dtype_may_be_written_as_numpy_writes_it() -> None:
    assert Grid(3, dtype=np.float64) == Grid(3, dtype=np.dtype("f8")) == Grid(3, dtype="float64")
