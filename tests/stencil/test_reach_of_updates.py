"""Which cells an update changes, from its reads and the grid's edges; and grids on which it could change none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid import Box, Grid, Problem, UsageError
from peergrid.grid import Boundary, Index
from peergrid.stencil.expr import Const, Expr, Read
from peergrid.stencil.problem import Assignment, Update

KINDS: tuple[Boundary, ...] = ("fixed", "periodic", "reflecting")
OFFSETS = st.integers(-4, 4)


def summing(grid: Grid, offsets: list[Index], box: Box) -> Update:
    """u.next = the sum of u at the offsets, on a box."""
    value: Expr = Const(0.0)
    for offset in offsets:
        value = value + Read("u", offset)
    return Update("summing", box, (Assignment("u", value),), (grid.field("u"),))


def answered(grid: Grid, offsets: list[Index], cell: Index) -> bool:
    """Whether everything that a cell reads lies inside the fixed edges."""
    return all(
        0 <= i + o < n
        for offset in offsets
        for i, o, n, kind in zip(cell, offset, grid.shape, grid.boundary, strict=True)
        if kind == "fixed"
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Grid, list[Index], Box]:
    """A little grid, single cells among its lengths, offsets of any size up to 4, and a box inside the grid."""
    axes = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, 6)] * axes))
    grid = Grid(shape, draw(st.tuples(*[st.sampled_from(KINDS)] * axes)))
    offsets = draw(st.lists(st.tuples(*[OFFSETS] * axes), min_size=1, max_size=3))
    spans = [sorted(draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))) for n in shape]
    return grid, offsets, Box(tuple(a for a, _ in spans), tuple(b + 1 for _, b in spans))


@given(cases())
def test_an_update_changes_the_cells_whose_reads_are_answered(case: tuple[Grid, list[Index], Box]) -> None:
    grid, offsets, box = case
    wanted = {cell for cell in grid.box.cells() if answered(grid, offsets, cell)}
    reads = [read for offset in offsets for read in zip(offset, grid.shape, grid.boundary, strict=True)]
    around = any(abs(offset) > extent and kind != "fixed" for offset, extent, kind in reads)
    changed = wanted & set(box.cells())
    if not wanted or (changed and around):
        with pytest.raises(UsageError, match="cells away" if wanted else "no cell would change"):
            Problem.of(summing(grid, offsets, box))
        return
    (stage,) = Problem.of(summing(grid, offsets, box)).stages
    assert set(stage.updates[0].box.cells()) == changed


@pytest.mark.parametrize("kind", ["periodic", "reflecting"])
def test_one_cell_is_its_own_neighbour_unless_the_edge_is_fixed(kind: Boundary) -> None:
    offsets = [(0, -1), (0, 1)]
    open_, closed = Grid((5, 1), ("fixed", kind)), Grid((5, 1))
    (stage,) = Problem.of(summing(open_, offsets, open_.box)).stages
    assert stage.updates[0].box == open_.box
    with pytest.raises(UsageError) as refused:
        Problem.of(summing(closed, offsets, closed.box))
    assert str(refused.value) == (
        "Update 'summing' reads 1 below and 1 above its cell along the fixed axis 1, which has 1: no cell would "
        "change; use a larger grid or another boundary."
    )


def test_a_confined_update_may_touch_no_cell() -> None:
    grid = Grid(8)
    (stage,) = Problem.of(summing(grid, [(-1,)], Box((0,), (1,)))).stages
    assert stage.updates[0].box.empty
