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


def test_the_source_reads_like_the_stencil() -> None:
    text = source_of(relaxed((8, 9), 0.1, "u"))
    assert "# stage 0, relax on [0,8)×[0,8): p0: u.next, p1: u[0, 0], p2: k=0.1, p3: c[0, 0], p4: u[0, 1]" in text
    assert text.count("def cells(") == 1
    _, whole, rest = text[: text.index("def rows")].split("for x in ")
    assert (whole.splitlines()[0], rest.splitlines()[0]) == ("range(n & -16):", "range(n & -16, n):")
    for loop, v in ((whole, "v"), (rest, "w")):
        assert [line.strip() for line in loop.splitlines() if "[x]" in line] == [
            f"{v}0 = p1[x]", f"{v}2 = p4[x]", f"p0[x] = {v}6",
        ]  # fmt: skip
    assert "c0 = p2[0]" in text  # what is the same along a row is read once
    assert "K0 = number(2.0)" in text


def test_the_source_shows_every_form() -> None:
    text = source_of(PLANE["yee"]((12, 12), ("fixed", "fixed"), "float64"))
    assert "from numpy import float64 as number" in text
    for name in ("magnetic", "damped", "electric", "emit"):
        assert f", {name} on " in text
    compile(text, "listing", "exec")
