"""Problems that hardly anybody has, on the CUDA executor: the reference's bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out

from peergrid import Options, reduction
from peergrid.bench.problems import noisy
from peergrid.codegen.cuda.choose.steps import supports
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid import Box, Grid, Index
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Receiver, Stage, stencil

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STREAMS = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
LAYER = Box((0, 0, 1), (40, 12, 5))


@stencil
def near(u: Any) -> None:
    u.next[0, 0] = 0.5 * u[0, 0] + 0.25 * (u[1, 0] + u[0, -1])


@stencil
def old(u: Any, c: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + c.prev[0, 0, 0]


@stencil
def ahead(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.2 * v[1, 1, 0]


@stencil
def behind(v: Any, u: Any) -> None:
    v.next[0, 0, 0] = 0.5 * u[-1, 0, 0]


@stencil
def constant(u: Any) -> None:
    u.next[0, 0, 0] = 1.0


@stencil
def copied(v: Any, u: Any) -> None:
    v.next[0, 0, 0] = 0.5 * u[0, 0, 0]


@stencil
def along(u: Any, p: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + p[0, 0, 0] * u[0, 1, 0] + p[0, -1, 0] * u[1, 0, 0]


def few_cells() -> Problem:
    """Along the sides no update changes anything."""
    u = Grid((70, 140)).field("u")
    return noisy(Problem.of([near(u).within(Box((33, 34), (35, 48)))]))


def small_field() -> Problem:
    """All fields exist in a small part of the grid."""
    box = Box((3, 30), (30, 60))
    return noisy(Problem.of([near(Grid((70, 140)).field("u", within=box)).within(Box((3, 31), (29, 60)))]))


def no_cells() -> Problem:
    """All that an update reads lies in the grid nowhere in its box."""
    grid = Grid((44, 12, 20))
    return noisy(Problem.of([ahead(grid.field("u"), grid.field("v", 1.0)).within(Box((43, 0, 0), (44, 12, 20)))]))


def constant_heard() -> Problem:
    """A receiver of a coefficient that nothing but a reduction reads."""
    grid = Grid((700,))
    u, c = grid.field("u"), grid.field("c", np.linspace(1, 2, 700))

    @stencil
    def halve(u: Any) -> None:
        u.next[0] = 0.5 * u[0]

    @reduction("sum", every=2)
    def total(u: Any, c: Any) -> Any:
        return u[0] * c[0]

    return Problem.of([halve(u)], [Receiver("r", "c", (466,))], [total(u, c)])


def old_coefficient() -> Problem:
    grid = Grid((26, 10, 40), dtype="float64")
    return noisy(Problem.of([old(grid.field("u"), grid.field("c", 1.0, prev=2.0))]))


def slower_first() -> Problem:
    """A stage that reads planes behind follows one that reads planes ahead."""
    grid = Grid((44, 12, 20), dtype="float64")
    u, v = grid.field("u"), grid.field("v")
    return noisy(Problem.of([ahead(u, v), behind(v, u)]))


def plane_between() -> Problem:
    """An update of few cells between two launches, in a plane from one reflecting edge to the other."""
    grid = Grid((22, 16, 33), ("fixed", "reflecting", "reflecting"))
    u, v = grid.field("u"), grid.field("v")

    @stencil
    def first(v: Any, u: Any) -> None:
        v.next[0, 0, 0] = 0.5 * v[0, 0, 0] + 0.2 * u[0, 0, 1] - 0.2 * v[0, 0, -1]

    @stencil
    def between(v: Any, u: Any) -> None:
        v.next[0, 0, 0] = u[0, 0, 0] + u[1, 0, 0]

    @stencil
    def last(u: Any, v: Any) -> None:
        u.next[0, 0, 0] = 0.4 * v[0, 3, 0]

    plane = Box((0, 0, 29), (22, 16, 30))
    return noisy(Problem.of([first(v, u), between(v, u).within(plane), last(u, v)]))


def source_at_a_layer() -> Problem:
    """A source whose cell is read beside a layer of another update, which no stream makes."""
    grid = Grid((40, 14, 28))
    u, v = grid.field("u"), grid.field("v")
    low, high = grid.box.with_axis(0, 0, 22), grid.box.with_axis(0, 22, 40)

    @stencil
    def source(u: Any) -> None:
        u.next[0, 0, 0] = u[0, 0, 0] + 1.0

    @stencil
    def decay(u: Any, k: float) -> None:
        u.next[0, 0, 0] = k * u[0, 0, 0]

    @stencil
    def follow(v: Any, u: Any) -> None:
        v.next[0, 0, 0] = 0.6 * v[0, 0, 0] + 0.15 * (u[0, 0, 0] + u[-1, 0, 0])

    layers = Stage((decay(u, 0.5).within(low), decay(u, 0.4).within(high)))
    return noisy(Problem.of([source(u).within(Box.cell((21, 2, 9))), layers, follow(v, u)]))


def before_a_layer(first: Any, second: Any) -> Problem:
    """Two stages, and a layer at the ends of rows that goes on from what the second one wrote."""
    grid = Grid((40, 12, 24), "reflecting")
    end = grid.box.with_axis(2, 20, 24)
    u, v, m = grid.field("u"), grid.field("v"), grid.field("m", within=end)

    @stencil
    def absorb(u: Any, m: Any) -> None:
        m.next[0, 0, 0] = 0.5 * m[0, 0, 0] + 0.1 * u[0, 0, 0]
        u.next[0, 0, 0] = 0.7 * u[0, 0, 0] + 0.3 * m[0, 0, 0]

    return noisy(Problem.of([first(u, v), second(u, v), absorb(u, m).within(end)]))


@stencil
def along_rows(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.4 * u[0, 0, 0] + 0.4 * u[0, 0, -1]
    v.next[0, 0, 0] = 0.5 * v[0, 0, 0]


@stencil
def next_plane(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.4 * u[1, -1, 0] + 0.4 * v[0, 0, 0]


@stencil
def other_field(v: Any) -> None:
    v.next[0, 0, 0] = 0.4 * v[0, 0, 0]


@stencil
def beside(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.4 * v[0, 0, 0] + 0.4 * v[0, 0, 1]


@stencil
def next_column(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.2 * v[0, 0, 1]


@stencil
def decay(u: Any) -> None:
    u.next[0, 0, 0] = 0.7 * u[0, 0, 0]


def layer_without_fields() -> Problem:
    """A layer at the ends of rows with nothing to load."""
    grid = Grid((40, 12, 24))
    u, v = grid.field("u"), grid.field("v")
    layer = decay(u).within(grid.box.with_axis(2, 1, 5))
    return noisy(Problem.of([copied(v, u), next_column(u, v), layer]))


def layer_between_stages() -> Problem:
    """A layer at the ends of rows between two updates of its field: what it makes is not stored."""
    grid = Grid((24, 12, 24))
    u = grid.field("u")

    @stencil
    def backward(u: Any) -> None:
        u.next[0, 0, 0] = 0.4 * u[0, 0, 0] + 0.4 * u[0, 0, -1]

    return noisy(Problem.of([decay(u), decay(u).within(grid.box.with_axis(2, 0, 6)), backward(u)]))


def layer_of_a_wave(*late: Any) -> Problem:
    """A wave in place with a layer at the ends of rows and later stages, and a receiver in the layer."""
    grid = Grid((40, 12, 24), "reflecting")
    u, v = grid.field("u"), grid.field("v")

    @stencil
    def wave(u: Any, v: Any) -> None:
        u.next[0, 0, 0] = 0.4 * u[0, 0, 0] - 0.3 * u.prev[0, 0, 0] + 0.2 * v[0, 1, 0]

    @stencil
    def source(u: Any) -> None:
        u.next[0, 0, 0] = u[0, 0, 0] + 1.0

    changes = [(decay if box == LAYER else source)(u).within(box) for box in late]
    return noisy(Problem.of([other_field(v), wave(u, v), *changes], [Receiver("r", "u", (20, 6, 3))]))


def nothing_read() -> Problem:
    """No stage reads anything but what another has made in the same step."""
    u, v = Grid((24, 12, 24)).field("u"), Grid((24, 12, 24)).field("v")
    return noisy(Problem.of([constant(u), copied(v, u)]))


def beside_a_profile() -> Problem:
    grid = Grid((24, 20, 40), dtype="float64")
    return noisy(Problem.of([along(grid.field("u"), grid.profile("p", 2, np.linspace(0, 0.2, 40)))]))


def rows_without_work() -> Problem:
    """A device of a row at the edge, which keeps its values; receivers need the step counters of all devices."""
    u = Grid((24, 3, 16)).field("u")

    @stencil
    def relax(u: Any) -> None:
        u.next[0, 0, 0] = 0.25 * (u[0, -1, 0] + 2 * u[0, 0, 0] + u[0, 1, 0])

    return noisy(Problem.of([relax(u)], [Receiver("r", "u", (7, 1, 7))]))


def halves_of_a_ring() -> Problem:
    """Slabs whose updates differ, across a periodic axis; a receiver at its edge."""
    grid = Grid((22, 16, 33), ("periodic", "fixed", "fixed"), "float64")
    u, low = grid.field("u"), Box((0, 0, 0), (22, 16, 21))

    @stencil
    def shift(u: Any) -> None:
        u.next[0, 0, 0] = u[-4, 0, 1]

    @stencil
    def fill(u: Any) -> None:
        u.next[0, 0, 0] = 0.5

    halves = Stage((fill(u).within(low), shift(u).within(low.with_axis(2, 21, 33))))
    return noisy(Problem.of([halves], [Receiver("r", "u", (0, 12, 28))]))


@stencil
def wave(u: Any) -> None:
    around = u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u[0, 0]
    u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + 0.1 * around


@stencil
def slope(g: Any, u: Any) -> None:
    g.next[0, 0] = u[1, 0] - u[-1, 0] + u[0, 1] - u[0, -1]


@pytest.mark.parametrize("strategy", ["serial", "async", "threads", "overlap", "graph", "peer"])
def test_cells_beside_the_corners_of_four_boxes(strategy: StrategyName) -> None:
    """The first stage makes its values beside a box for the second one, at corners, too, where they have been sent."""
    grid, noise = Grid((20, 22)), np.random.default_rng(1)
    u = grid.field("u", noise.random(grid.shape), prev=noise.random(grid.shape))
    problem = Problem.of([wave(u), slope(grid.field("g"), u)])
    assert carried_out(problem, (2, 2), Options(strategy, depth=1), HostDriver()) == expected(problem)


@pytest.mark.parametrize("problem", [small_field(), nothing_read()])
def test_without_fields_to_load_nothing_streams(problem: Problem) -> None:
    assert not supports(problem, 2)


@pytest.mark.parametrize(
    ("problem", "split", "options"),
    [
        (few_cells(), (1, 2), Options("overlap", depth=3)),
        (rows_without_work(), (1, 3, 1), Options("graph", depth=2, block=1)),
        (no_cells(), (2, 1, 1), Options("graph", depth=1)),
        (no_cells(), (1, 1, 1), Options("graph", depth=1)),
        (constant_heard(), (2,), Options("serial", depth=4)),
        (old_coefficient(), (1, 1, 1), Options("serial", depth=3)),
        (slower_first(), (1, 1, 1), Options("serial", depth=1)),
        (beside_a_profile(), (1, 1, 1), Options("overlap", depth=1)),
        (source_at_a_layer(), (1, 1, 1), Options("serial", depth=1)),
        (plane_between(), (1, 1, 2), Options("serial", depth=1)),
        (layer_without_fields(), (1, 1, 1), Options("serial", depth=1)),
        (layer_between_stages(), (1, 1, 1), Options("serial", depth=1)),
        (before_a_layer(along_rows, next_plane), (1, 1, 1), Options("serial", depth=1)),
        (before_a_layer(lambda u, v: other_field(v), beside), (1, 1, 1), Options("serial", depth=1)),
        (layer_of_a_wave(LAYER), (1, 1, 1), Options("serial", depth=1)),
        (layer_of_a_wave(LAYER, Box.cell((20, 6, 3))), (1, 1, 1), Options("serial", depth=1)),
        (layer_of_a_wave(Box.cell((20, 6, 3)), LAYER), (1, 1, 1), Options("serial", depth=1)),
        (halves_of_a_ring(), (1, 1, 1), Options("serial", depth=2, block=1)),
        (halves_of_a_ring(), (1, 1, 2), Options("serial", depth=2, block=1)),
    ],
)
def test_same_bits(problem: Problem, split: Index, options: Options) -> None:
    for seed in (1, 2):
        assert carried_out(problem, split, options, HostDriver(gpu=STREAMS, seed=seed)) == expected(problem)
