"""First values that a function gives on any box: the same fields as from the whole array, ghost cells included."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_problems import heat_2d, values

from peergrid import Box, Grid, Problem, Simulation, UsageError
from peergrid.grid import Boundary
from peergrid.stencil.identity import identity

SHAPE = (23, 17)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
def test_a_function_gives_what_its_array_does(boundary: Boundary) -> None:
    grid, whole = Grid(SHAPE, boundary), values(SHAPE).astype(np.float32)
    digests = set()
    for init in (whole, lambda box: whole[box.slices((0, 0))]):
        with Simulation(Problem.of([heat_2d(grid.field("u", init), 0.2)]), 9, devices="cpu:3") as simulation:
            simulation.run(9)
            digests.add(simulation.sha256())
    assert len(digests) == 1


def test_problems_of_other_values_are_other_problems() -> None:
    def made(factor: float) -> Problem:
        return Problem.of([heat_2d(Grid(SHAPE).field("u", lambda box: factor * np.ones(box.shape)), 0.2)])

    assert identity(made(1.0)) == identity(made(1.0))
    assert identity(made(1.0)) != identity(made(2.0))


def test_values_of_another_shape_are_refused() -> None:
    field = Grid(SHAPE).field("u", lambda box: np.zeros(3))
    with pytest.raises(UsageError, match=r"'u' takes a number or an array of shape \(2, 4\), got shape \(3,\)"):
        field.values(Box((1, 1), (3, 5)))


def test_a_box_of_a_confined_field_is_within_it() -> None:
    grid, box = Grid(SHAPE), Box((2, 3), (9, 11))
    whole = values((7, 8))
    field = grid.field("u", whole, within=box)
    assert (field.values(Box((3, 5), (4, 6))) == whole[1:2, 2:3].astype(np.float32)).all()
