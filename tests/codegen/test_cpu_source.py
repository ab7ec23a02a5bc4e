"""The generated source: what is shared, what is printed."""

from __future__ import annotations

from stream_problems import PLANE, values

from peergrid import source_of
from peergrid.codegen.cpu.plan import code_of
from peergrid.grid import Grid
from peergrid.stencil import Problem, stencil


@stencil
def relax(u, k, c):
    u.next[0, 0] = u[0, 0] + k * c[0, 0] * (u[0, 1] - 2 * u[0, 0])


def relaxed(shape: tuple[int, int], k: float, name: str) -> Problem:
    grid = Grid(shape)
    return Problem.of(relax(grid.field(name, values(shape, 1)), k, grid.profile("c", 0, values(shape[:1], 2))))


def test_one_function_serves_all_shapes_values_and_names() -> None:
    one = code_of(relaxed((8, 9), 0.1, "u"), 0, 0)
    two = code_of(relaxed((20, 30), 0.7, "v"), 0, 0)
    assert one.text == two.text


def test_the_source_says_what_pointers_mean() -> None:
    text = source_of(relaxed((8, 9), 0.1, "u"))
    assert "; stage 0, relax on [0,8)×[0,8): p0: u.next, p1: u[0, 0], p2: k=0.1, p3: c[0, 0], p4: u[0, 1]" in text
    assert text.count("define void @rows(") == 1
    assert text.count("load float, ptr %l2") == 1  # what is the same along a row is read once
    whole, last = text.split("last:")
    assert [whole.count(f"getelementptr i8, ptr %l{p}, i64 %x") for p in (1, 4, 0)] == [1, 1, 1]
    assert [last.count(f"getelementptr i8, ptr %l{p}, i64 %whole") for p in (1, 4, 0)] == [1, 1, 1]


def test_the_source_shows_every_form() -> None:
    text = source_of(PLANE["yee"]((12, 12), ("fixed", "fixed"), "float64"))
    assert "<8 x double>" in text
    for name in ("magnetic", "damped", "electric", "emit"):
        assert f", {name} on " in text
