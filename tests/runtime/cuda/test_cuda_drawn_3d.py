"""3D problems that stream, drawn: layers with memories, sources and receivers around usual updates; the same bits.

Memories of layers are read beside a cell and behind the wave, on any sides, under any cut, by emulated GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from executions import step_by_step
from host_driver import COMPILER, HostDriver
from host_runs import carried_out
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peergrid import Grid, Options, Problem, stencil
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid import Boundary, Box, Field, Index
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Receiver, Stage

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STREAMS = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
HERE = (0, 0, 0)
EDGES: list[Boundary] = ["fixed", "fixed", "fixed", "reflecting", "periodic"]
CUTS: list[tuple[StrategyName, Index]] = [
    ("serial", (1, 1, 1)),
    ("threads", (2, 1, 1)),
    ("overlap", (2, 1, 1)),
    ("overlap", (1, 2, 1)),
    ("overlap", (1, 1, 2)),
    ("graph", (2, 1, 1)),
    ("peer", (2, 2, 1)),
]
Part = tuple[Callable[..., Any], tuple[Any, ...], Box]
"""A stencil, its arguments, and where it applies."""


def moved(axis: int, cells: int) -> Index:
    """The offset of so many cells along an axis."""
    x, y, z = (cells if k == axis else 0 for k in range(3))
    return x, y, z


def around(u: Any) -> Any:
    return sum((u[moved(axis, k)] for axis in range(3) for k in (-1, 1)), -6 * u[HERE])


@stencil
def wave(u: Any, m: Any) -> None:
    u.next[HERE] = 2 * u[HERE] - u.prev[HERE] + m[HERE] * around(u)


@stencil
def heat(u: Any, m: Any) -> None:
    u.next[HERE] = u[HERE] + m[HERE] * around(u)


@stencil
def ahead(v: Any, u: Any, m: Any) -> None:
    v.next[HERE] = v[HERE] + m[HERE] * (u[1, 0, 0] + u[0, 1, 0] + u[0, 0, 1] - 3 * u[HERE])


@stencil
def behind(u: Any, v: Any) -> None:
    u.next[HERE] = u[HERE] + 0.1 * (3 * v[HERE] - v[-1, 0, 0] - v[0, -1, 0] - v[0, 0, -1])


@stencil
def add(u: Any, s: Any) -> None:
    u.next[HERE] = u[HERE] + s.now


def remember(axis: int) -> Any:
    @stencil
    def first(psi: Any, u: Any) -> None:
        psi.next[HERE] = 0.5 * psi[HERE] + 0.1 * (u[moved(axis, 1)] - u[HERE])

    return first


def remember_both(axis: int) -> Any:
    @stencil
    def second(zeta: Any, psi: Any, u: Any) -> None:
        zeta.next[HERE] = 0.5 * zeta[HERE] + 0.2 * (psi[HERE] - psi[moved(axis, -1)]) + 0.1 * u[HERE]

    return second


def stretch(axis: int) -> Any:
    @stencil
    def last(u: Any, psi: Any, zeta: Any) -> None:
        u.next[HERE] = u[HERE] + 0.1 * (psi[HERE] - psi[moved(axis, -1)]) + 0.05 * zeta[HERE]

    return last


@stencil
def absorb(u: Any, zeta: Any) -> None:
    zeta.next[HERE] = 0.5 * zeta[HERE] + 0.1 * u[HERE]
    u.next[HERE] = u[HERE] + 0.05 * zeta[HERE]


def between(axis: int) -> Any:
    @stencil
    def look(r: Any, u: Any) -> None:
        r.next[HERE] = 0.5 * u[HERE] + 0.5 * u[moved(axis, 1)]

    return look


@dataclass(frozen=True)
class Drawn:
    """The stages around usual updates, each with one update."""

    grid: Grid
    u: Field
    inner: Box

    def layer(self, number: int, axis: int, low: bool, cells: int, passes: bool) -> tuple[list[Part], list[Part]]:
        """A layer at an end of an axis, before and behind the usual updates; passes: its memories to what is behind."""
        end = self.grid.shape[axis]
        box = self.inner.with_axis(axis, *((1, 1 + cells) if low else (end - 1 - cells, end - 1)))
        psi = self.grid.field(f"psi{number}", within=box.with_axis(axis, box.lo[axis] - 1, box.hi[axis] + 1))
        zeta = self.grid.field(f"zeta{number}", within=box)
        if not passes:
            return [], [(absorb, (self.u, zeta), box)]
        before: list[Part] = [(remember(axis), (psi, self.u), box), (remember_both(axis), (zeta, psi, self.u), box)]
        return before, [(stretch(axis), (self.u, psi, zeta), box)]

    def line(self, cell: Index, cells: int) -> tuple[list[Part], Receiver]:
        """A row of cells between nodes, looked up along two axes, and its first receiver."""
        box = Box(cell, (cell[0] + 1, cell[1] + cells, cell[2] + 1))
        wide = box.with_axis(0, cell[0], cell[0] + 2)
        one, two = (self.grid.field(f"r{k}", within=part) for k, part in enumerate((wide, box)))
        return [(between(1), (one, self.u), wide), (between(0), (two, one), box)], Receiver("r", "r1", cell)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    shape = draw(st.integers(34, 56)), draw(st.integers(12, 22)), draw(st.integers(20, 60))
    edges: list[Boundary] = [draw(st.sampled_from(EDGES)) for _ in shape]
    grid = Grid(shape, (edges[0], edges[1], edges[2]))
    ends = [(0, n) if edge == "periodic" else (1, n - 1) for n, edge in zip(shape, edges, strict=True)]
    inner = Box((ends[0][0], ends[1][0], ends[2][0]), (ends[0][1], ends[1][1], ends[2][1]))
    noise = np.random.default_rng(draw(st.integers(0, 9)))
    now, m = noise.uniform(0.1, 0.3, shape), grid.field("m", noise.uniform(0.01, 0.1, shape))
    former = now.copy()
    former[inner.slices(HERE)] = noise.uniform(0.1, 0.3, inner.shape)
    main = draw(st.sampled_from(["wave", "wave", "heat", "pair"]))
    u = grid.field("u", now, prev=former) if main == "wave" else grid.field("u", now)
    v = grid.field("v", 0.1) if main == "pair" else None
    usual: list[Part] = [(wave if main == "wave" else heat, (u, m), inner)]
    if v is not None:
        usual = [(ahead, (v, u, m), inner), (behind, (u, v), inner)]
    drawn, early, late, receivers = Drawn(grid, u, inner), list[Part](), list[Part](), list[Receiver]()
    for number in range(draw(st.integers(1, 4))):
        axis, low, passes = draw(st.integers(0, 2)), draw(st.booleans()), draw(st.sampled_from([True, True, False]))
        if edges[axis] != "periodic":
            before, after = drawn.layer(number, axis, low, draw(st.integers(2, 5)), passes)
            early += before
            late += after
    cells = st.tuples(*(st.integers(2, n - 8) for n in shape))
    for number in range(draw(st.integers(0, 2))):
        cell, signal = draw(cells), grid.signal(f"s{number}", np.linspace(1, 2, 8))
        box = Box(cell, (cell[0] + draw(st.integers(1, 2)), cell[1] + 1, cell[2] + 2))
        draw(st.sampled_from([late, late, early])).append((add, (draw(st.sampled_from([u, v or u])), signal), box))
    if "periodic" not in edges and draw(st.booleans()):
        found, receiver = drawn.line(draw(cells), draw(st.integers(1, 6)))
        early += found
        receivers.append(receiver)
    stages = [Stage((made(*given).within(box),)) for made, given, box in (*early, *usual, *late)]
    return Problem.of(stages, receivers)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=problems(),
    cut=st.sampled_from(CUTS),
    wide=st.sampled_from([1 << 8, 1 << 20]),
    depth=st.sampled_from([1, 1, 1, 2]),
)
def test_same_bits_as_step_by_step(problem: Problem, cut: tuple[StrategyName, Index], wide: int, depth: int) -> None:
    """wide: cells of a region, from which on it has a launch of its own."""
    strategy, split = cut
    driver = HostDriver(gpu=replace(STREAMS, wide_cube=wide, wide_cells=wide), seed=1)
    assert carried_out(problem, split, Options(strategy, depth=depth), driver) == step_by_step(problem)
