"""How far back a result reaches, by hand-counted examples; `tests/schedule/test_exact_cells.py` draws others."""

from __future__ import annotations

import pytest

from peergrid.grid import Box, Grid
from peergrid.grid.grid import Boundary
from peergrid.stencil import Growth, Problem, footprint, read_box, read_boxes, stencil, write_box


@stencil
def lopsided(u):  # type: ignore[no-untyped-def]
    u.next[0] = u[-3] + u[1]


@stencil
def magnetic(h, e):  # type: ignore[no-untyped-def]
    h.next[0] = h[0] + e[1] - e[0]


@stencil
def electric(e, h, c):  # type: ignore[no-untyped-def]
    e.next[0] = e[0] + c[0] * (h[0] - h[-1])


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_one_stage_reaches_its_offsets_times_the_steps(steps: int) -> None:
    problem = Problem.of(lopsided(Grid(100).field("u")))
    assert footprint(problem, steps).inputs["u"] == Growth((3 * steps,), (steps,))
    assert read_box(problem, "u", Box((40,), (50,)), steps) == Box((40 - 3 * steps,), (50 + steps,))


def test_a_mirror_makes_both_sides_reach_as_far() -> None:
    problem = Problem.of(lopsided(Grid(100, "reflecting").field("u")))
    assert footprint(problem, 1).inputs["u"] == Growth((3,), (3,))


def test_reads_end_at_the_grid_unless_it_closes() -> None:
    for boundary, expected in (("fixed", Box((0,), (11,))), ("periodic", Box((-3,), (11,)))):
        problem = Problem.of(lopsided(Grid(20, boundary).field("u")))
        assert read_box(problem, "u", Box((0,), (10,)), 1) == expected


def test_two_stages_of_a_leapfrog_reach_one_cell_a_step() -> None:
    grid = Grid(50)
    e, h, c = (grid.field(name) for name in "ehc")
    problem = Problem.of([magnetic(h, e), electric(e, h, c)])
    found = footprint(problem, 2)
    assert found.inputs == {"e": Growth((2,), (2,)), "h": Growth((2,), (1,)), "c": Growth((1,), (1,))}
    assert found.targets[1] == ({"h": Growth((1,), (0,))}, {"e": Growth((0,), (0,))})


def test_a_confined_field_is_read_and_written_where_it_is() -> None:
    grid = Grid(30)
    u = grid.field("u", within=Box((4,), (9,)))
    problem = Problem.of(lopsided(u).within(Box((7,), (8,))))
    assert read_box(problem, "u", Box((0,), (30,)), 1) == Box((4,), (9,))
    assert write_box(problem, "u", Box((6,), (30,))) == Box((6,), (9,))


@stencil
def slope(g, u):  # type: ignore[no-untyped-def]
    g.next[0] = u[1] - u[-1]


@stencil
def bend(u, g):  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + g[1] - g[-1]


@pytest.mark.parametrize(
    ("boundary", "within", "read"),
    [
        ("periodic", None, ()),  # written everywhere
        ("fixed", Box((2,), (28,)), (Box((0,), (1,)),)),  # the first cell, which no update writes, stays in the copy
        ("fixed", None, (Box((0,), (11,)),)),  # the first cell is read, too
    ],
)
def test_of_a_field_that_a_step_writes_before_it_reads_old_values_are_not_read(
    boundary: Boundary, within: Box | None, read: tuple[Box, ...]
) -> None:
    grid = Grid(30, boundary)
    u, g = grid.field("u"), grid.field("g")
    last = bend(u, g) if within is None else bend(u, g).within(within)
    assert read_boxes(Problem.of([slope(g, u), last]), "g", Box((0,), (10,)), 1) == read
    back = Problem.of([last, slope(g, u)])  # reads what the step before has left
    assert read_boxes(back, "g", Box((0,), (10,)), 1)[-1].hi[0] > 10
