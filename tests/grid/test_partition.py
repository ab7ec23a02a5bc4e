"""Every cell has one owner, whatever the shape and the number of devices."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.grid import Grid
from peergrid.grid.partition import Partition


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    return Partition(Grid(shape), tuple(draw(st.integers(1, min(n, 5))) for n in shape))


@given(partitions())
def test_every_cell_is_owned_once_and_the_shares_are_even(partition: Partition) -> None:
    boxes = [partition.owned(d) for d in range(partition.devices)]
    assert sum(box.size for box in boxes) == partition.grid.box.size
    assert all(partition.grid.box.covers(box) for box in boxes)
    assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])
    for axis in range(partition.grid.ndim):
        lengths = [box.shape[axis] for box in boxes]
        assert max(lengths) - min(lengths) <= 1


@given(partitions())
def test_devices_are_numbered_in_c_order(partition: Partition) -> None:
    places = [partition.coordinates(d) for d in range(partition.devices)]
    assert places == list(product(*map(range, partition.parts)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(1, 12))
def test_any_number_of_devices_that_fits_is_found(shape: list[int], devices: int) -> None:
    grid = Grid(tuple(shape))
    fits = any(prod(parts) == devices for parts in product(*(range(1, n + 1) for n in shape)))
    if fits:
        assert Partition.over(grid, devices).devices == devices
    else:
        with pytest.raises(UsageError, match="use fewer devices or a larger grid"):
            Partition.over(grid, devices)


def test_slabs_along_the_first_axis_while_it_has_the_cells() -> None:
    assert Partition.over(Grid((7, 100)), 7).parts == (7, 1)
    assert Partition.over(Grid((5, 100)), 6).parts == (1, 6)
    assert Partition.over(Grid((4, 40, 41)), 6).parts == (1, 2, 3)


@pytest.mark.parametrize(
    ("shape", "parts", "sentence"),
    [
        ((4, 4), (2,), "A split gives a positive number of parts for each of the 2 axes, got (2,)."),
        ((4, 4), (0, 1), "A split gives a positive number of parts for each of the 2 axes, got (0, 1)."),
        (
            (4, 3),
            (1, 4),
            "The grid has 3 cells along axis 1, too few for 4 parts; "
            "use at most 3 devices there or split another axis.",
        ),
    ],
)
def test_a_split_that_cannot_be_is_refused(shape: tuple[int, ...], parts: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        Partition(Grid(shape), parts)
    assert str(refused.value) == sentence


def test_no_device_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^A grid is split over at least one device, got 0\.$"):
        Partition.over(Grid(4), 0)
