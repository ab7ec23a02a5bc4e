"""Every cell has one owner, whatever the shape and the number of devices."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition, balanced_cuts, even_cuts


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    return Partition(Grid(shape), tuple(draw(st.integers(1, min(n, 5))) for n in shape))


@st.composite
def uneven(draw: st.DrawFn) -> Partition:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    inner = [draw(st.sets(st.integers(1, n - 1), max_size=4)) if n > 1 else set() for n in shape]
    cuts = tuple((0, *sorted(cells), n) for cells, n in zip(inner, shape, strict=True))
    return Partition(Grid(shape), tuple(len(c) - 1 for c in cuts), cuts)


@given(data=st.data(), partition=partitions() | uneven())
def test_owners_of_a_box_are_those_with_an_image_in_it(data: st.DataObject, partition: Partition) -> None:
    """Also of boxes beyond the edges, where only periodic axes have anybody."""
    shape = partition.grid.shape
    kinds = data.draw(st.tuples(*(st.sampled_from(("fixed", "periodic", "reflecting")) for _ in shape)))
    cut = Partition(Grid(shape, kinds), partition.parts, partition.cuts)
    lo = tuple(data.draw(st.integers(-n, n)) for n in shape)
    box = Box(lo, tuple(a + data.draw(st.integers(1, n)) for a, n in zip(lo, shape, strict=True)))
    expected = [d for d in range(cut.devices) if cut.grid.images(cut.owned(d), box)]
    assert list(cut.owners(box)) == expected


@given(partitions() | uneven())
def test_every_cell_is_owned_once(partition: Partition) -> None:
    boxes = [partition.owned(d) for d in range(partition.devices)]
    assert sum(box.size for box in boxes) == partition.grid.box.size
    assert all(partition.grid.box.covers(box) for box in boxes)
    assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])


@given(partitions())
def test_the_shares_are_even_unless_cuts_are_given(partition: Partition) -> None:
    boxes = [partition.owned(d) for d in range(partition.devices)]
    for axis in range(partition.grid.ndim):
        lengths = [box.shape[axis] for box in boxes]
        assert max(lengths) - min(lengths) <= 1
    assert Partition(partition.grid, partition.parts, partition.cuts) == partition


@given(uneven())
def test_devices_own_what_lies_between_the_cuts(partition: Partition) -> None:
    for device in range(partition.devices):
        box, place = partition.owned(device), partition.coordinates(device)
        for axis, cuts in enumerate(partition.cuts):
            assert (box.lo[axis], box.hi[axis]) == (cuts[place[axis]], cuts[place[axis] + 1])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 6), st.sampled_from((1, 4)), st.data())
def test_balanced_pieces_cost_alike(costs: list[int], parts: int, align: int, data: st.DataObject) -> None:
    least = data.draw(st.integers(1, max(1, len(costs) // parts)))
    cuts = balanced_cuts(costs, parts, align, least)
    if parts * -(-least // align) > len(costs) // align:
        assert cuts == even_cuts(len(costs), parts)
        return
    assert len(cuts) == parts + 1
    assert (cuts[0], cuts[-1]) == (0, len(costs))
    assert all(cut % align == 0 for cut in cuts[:-1])
    assert min(b - a for a, b in pairwise(cuts)) >= least
    dearest = max(sum(costs[k : k + align]) for k in range(0, len(costs), align))
    mean = sum(costs) / parts
    if least <= align and mean >= 2 * dearest:
        assert max(sum(costs[a:b]) for a, b in pairwise(cuts)) <= mean + dearest


def test_a_dear_end_gets_fewer_cells() -> None:
    assert balanced_cuts([9, 9, *[1] * 18], 2) == (0, 2, 20)
    assert balanced_cuts([1] * 6, 4) == (0, 2, 3, 5, 6)
    assert balanced_cuts([1] * 100, 3, align=32) == (0, 32, 64, 100)
    assert balanced_cuts([1] * 95, 3, align=32) == even_cuts(95, 3)


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


@pytest.mark.parametrize("cuts", [(0, 2, 2, 7), (1, 3, 5, 7), (0, 3, 5, 6), (0, 5, 3, 7)])
def test_cuts_that_leave_a_device_nothing_are_refused(cuts: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"^Cuts along axis 0 rise from 0 to 7, got "):
        Partition.slabs(Grid((7, 5)), cuts)


def test_more_cuts_than_parts_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^A split in \(2, 1\) parts has one cut more than parts"):
        Partition(Grid((7, 5)), (2, 1), ((0, 1, 2, 7), (0, 5)))


def test_no_device_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^A grid is split over at least one device, got 0\.$"):
        Partition.over(Grid(4), 0)
