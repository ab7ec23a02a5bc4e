"""Tables: what an index means, what a problem has of them, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from table_problems import media

from peergrid import Box, Grid, Problem, Simulation, UsageError, run, source_of, stencil
from peergrid.grid import Dtype
from peergrid.io.checkpoint import read_state, write_state
from peergrid.stencil.cost import minimal_bytes, operations
from peergrid.stencil.expr import Entry, Read
from peergrid.stencil.identity import identity

GRID = Grid((8,), dtype="float64")
U, INDEX = GRID.field("u", 2.0), GRID.field("index", np.arange(8.0))
TABLE = GRID.table("table", [1.0, 10.0, 100.0])


@stencil
def scale(u: Any, index: Any, table: Any) -> None:
    u.next[0] = table[index[0]] * u[0]


@stencil
def look_up(u: Any, table: Any) -> None:
    u.next[0] = table[u[0]]


def test_an_entry_is_an_expression_of_its_index() -> None:
    update = scale(U, INDEX, TABLE)
    assert update.tables == (TABLE,)
    assert update.assignments[0].value.operands[0] is Entry("table", Read("index", (0,)))
    assert {read.field for read in update.reads} == {"index", "u"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
def test_indices_between_and_beyond_places(devices: str, dtype: Dtype) -> None:
    given = [0, 0.99, 1, 1.5, 2, 2.5, 3, 1e30, np.inf, -0.1, -7, -np.inf, np.nan, -0.0]
    expected = [1, 1, 10, 10, 100, 100, 100, 100, 100, 1, 1, 1, 1, 1]
    grid = Grid((len(given),), dtype=dtype)
    found = run(look_up(grid.field("u", given), grid.table("table", [1, 10, 100])), 1, devices=devices)
    assert found.fields["u"].tolist() == expected


def test_values_are_those_of_the_grid_s_type() -> None:
    table = Grid(3).table("t", [0.1, 2])
    assert table.values.dtype == np.float32
    assert (len(table), repr(table)) == (2, "Table('t', 2 float32)")
    given = np.array([1.0, 2.0], np.float32)
    kept = Grid(3).table("t", given)
    given[0] = 7
    assert kept.values.tolist() == [1.0, 2.0]


def test_a_table_is_part_of_a_problem_s_identity(tmp_path: Path) -> None:
    def problem(values: list[float]) -> Problem:
        return Problem.of(scale(U, INDEX, GRID.table("table", values)))

    same, other = problem([1, 10, 100]), problem([1, 10, 101])
    changed = {part for part, digest in identity(same).items() if identity(other)[part] != digest}
    assert changed == {"table 'table'"}
    with Simulation(same, 4, devices="cpu:1") as simulation:
        simulation.run(2)
        write_state(tmp_path / "state.h5", simulation.state())
    with Simulation(other, 4, devices="cpu:1") as simulation, pytest.raises(UsageError, match="table 'table'"):
        simulation.restore(read_state(tmp_path / "state.h5"))


def test_a_problem_with_tables_can_be_pickled() -> None:
    problem = media((9, 8))
    again = pickle.loads(pickle.dumps(problem))
    assert dict(again.tables) == dict(problem.tables)
    assert again.tables["keep"].values.tolist() == problem.tables["keep"].values.tolist()
    assert run(again, 3, devices="cpu:1").sha256 == run(problem, 3, devices="cpu:1").sha256


def test_look_ups_are_operations_and_take_no_bytes() -> None:
    problem = Problem.of(scale(U, INDEX, TABLE))
    assert minimal_bytes(problem) == 3 * 8 * 8
    assert operations(problem) == 2 * 8


def test_sources_name_tables() -> None:
    grid = Grid((40, 40))
    problem = Problem.of(_plane(grid))
    assert "p2: table" in source_of(problem)
    assert "// a.signals: [0] table" in source_of(problem, "cuda")


def _plane(grid: Grid) -> Any:
    @stencil
    def scaled(u: Any, index: Any, table: Any) -> None:
        u.next[0, 0] = table[index[0, 0]] * u[0, 0]

    return scaled(grid.field("u", 1.0), grid.field("index"), grid.table("table", [0.5, 0.25]))


def test_lengths_are_part_of_a_kernel_and_entries_are_not() -> None:
    def text(values: list[float]) -> str:
        return source_of(Problem.of(scale(U, INDEX, GRID.table("table", values))), "cuda")

    assert text([1, 2, 3]) == text([4, 5, 6]) != text([1, 2])


def _bare(u: Any, table: Any) -> None:
    u.next[0] = table * u[0]


def _condition(u: Any, table: Any) -> None:
    u.next[0] = table[u[0] > 0]


def _text(u: Any, table: Any) -> None:
    u.next[0] = table["a"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: GRID.table("t", [[1.0]]),
            "Table 't' takes a list of 1 to 2147483648 numbers, got shape (1, 1).",
        ),
        (lambda: Grid(3).table("t", []), "Table 't' takes a list of 1 to 16777216 numbers, got shape (0,)."),
        (lambda: Grid(3).table("t", 1.0), "Table 't' takes a list of 1 to 16777216 numbers, got shape ()."),
        (lambda: Grid(3).table("t", [1.0, np.nan]), "Table 't' takes finite numbers, got some that are not."),
        (
            lambda: Grid(3).table("t", [1e39]),
            "'t' takes numbers that float32 can hold, got larger ones; scale them.",
        ),
        (
            lambda: stencil(_bare)(U, TABLE),
            "A stencil combines values, got the table 'table' without an index; write table[...].",
        ),
        (
            lambda: stencil(_condition)(U, TABLE),
            "Table 'table' is indexed by a number, got a condition; use peergrid.where(condition, 1, 0).",
        ),
        (
            lambda: stencil(_text)(U, TABLE),
            "A stencil combines values of fields, signals and numbers, got 'a'.",
        ),
        (
            lambda: Problem.of(
                [scale(U, INDEX, TABLE), scale(U, INDEX, GRID.table("table", [1])).within(Box((0,), (2,)))]
            ),
            "Two different things are called 'table'; give each its own name.",
        ),
        (
            lambda: Problem.of(scale(U, INDEX, Grid(9).table("table", [1]))),
            "All fields, signals and tables of a problem share one grid; 'table' is on Grid(shape=(9,), "
            "boundary=('fixed',), dtype='float32').",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises((UsageError, TypeError)) as caught:
        make()
    assert str(caught.value) == sentence
