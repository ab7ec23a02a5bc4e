"""Hypothesis strategies for problems, splits and options: everything that a schedule may have to cope with, small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import get_args

import numpy as np
from executions import load
from hypothesis import assume
from hypothesis import strategies as st
from inorder import InOrderExecutor

from peergrid.grid import Array, Box, Field, Grid, Index
from peergrid.grid.grid import Boundary
from peergrid.grid.partition import Partition
from peergrid.schedule import Layout, Options, build, layout
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES
from peergrid.stencil import Growth, Problem, Stage, Update, footprint
from peergrid.stencil.expr import Const, Expr, Read
from peergrid.stencil.problem import Assignment

LONGEST = {1: 43, 2: 13, 3: 6}  # cells along an axis, by the number of axes
MOST_DEVICES, MOST_DEPTH = 5, 4
MOST_IMAGES = 64  # of a grid that its reads go around: a proof takes all pairs of their copies


@dataclass(frozen=True)
class Case:
    """A problem with a way to run it."""

    plan: Layout
    options: Options


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any problem on any split, even or not, under any options."""
    problem = draw(problems())
    options = draw(all_options())
    return Case(layout(problem, draw(partitions(problem.grid)), options), options)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Grids of one to three axes, single cells and primes among the lengths, each axis with its own boundary."""
    axes = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, LONGEST[axes])] * axes))
    kinds = draw(st.tuples(*[st.sampled_from(get_args(Boundary))] * axes))
    return Grid(shape, kinds, draw(st.sampled_from(("float32", "float64"))))


@st.composite
def splits(draw: st.DrawFn, grid: Grid) -> Index:
    """Parts along each axis, a few devices in all."""
    parts: list[int] = []
    for extent in grid.shape:
        parts.append(draw(st.integers(1, min(extent, MOST_DEVICES // int(np.prod(parts or [1]))))))
    return tuple(parts)


@st.composite
def partitions(draw: st.DrawFn, grid: Grid) -> Partition:
    """A few devices; their boxes as even as can be or cut anywhere."""
    parts = draw(splits(grid))
    if draw(st.booleans()):
        return Partition(grid, parts)
    return Partition(grid, parts, tuple(draw(cuts(n, p)) for n, p in zip(grid.shape, parts, strict=True)))


def cuts(extent: int, parts: int) -> st.SearchStrategy[Index]:
    """Any cuts of an axis into so many pieces."""
    places = st.integers(1, max(1, extent - 1))
    inner = st.sets(places, min_size=parts - 1, max_size=parts - 1)
    return inner.map(lambda found: (0, *sorted(found), extent))


@st.composite
def all_options(draw: st.DrawFn) -> Options:
    """Any strategy, depth, steps per pass and exchange order."""
    depth = draw(st.integers(1, MOST_DEPTH))
    return Options(
        strategy=draw(st.sampled_from(tuple(STRATEGIES))),
        depth=depth,
        block=draw(st.none() | st.integers(1, depth)),
        order=draw(st.sampled_from(tuple(ORDERS))),
        separate=draw(st.booleans()),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """One to three stages over up to three fields and a coefficient, with lopsided offsets up to four cells."""
    grid = draw(grids())
    names = ("u", "v", "w")[: draw(st.integers(1, 3))]
    rng = np.random.default_rng(7)
    fields = {name: grid.field(name, rng.random(grid.shape)) for name in (*names, "c")}
    stages = [draw(stages_of(grid, fields, names)) for _ in range(draw(st.integers(1, 3)))]
    problem = Problem.of(stages)
    assume(any(not u.box.empty for stage in problem.stages for u in stage.updates))
    assume(images(problem, MOST_DEPTH) <= MOST_IMAGES)
    return problem


def images(problem: Problem, steps: int) -> int:
    """How many copies of the grid the reads of so many steps touch, around its periodic axes."""
    reach = reduce(Growth.__or__, footprint(problem, steps).inputs.values())
    sides = zip(problem.grid.shape, reach.below, reach.above, problem.grid.periodic, strict=True)
    return prod(-(-(n + below + above) // n) for n, below, above, wraps in sides if wraps)


@st.composite
def stages_of(draw: st.DrawFn, grid: Grid, fields: dict[str, Field], names: tuple[str, ...]) -> Stage:
    """Updates of different fields, some confined to a box."""
    targets = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return Stage(tuple(draw(updates_of(grid, fields, names, target)) for target in targets))


@st.composite
def updates_of(draw: st.DrawFn, grid: Grid, fields: dict[str, Field], names: tuple[str, ...], target: str) -> Update:
    """A sum of reads with different weights, so that no two cells can be mistaken for each other."""
    reach = draw(st.sampled_from((0, 1, 1, 1, 2, 4)))
    near = st.tuples(*(st.integers(-below, above) for below, above in draw(reaches(grid, reach))))
    reads = draw(st.lists(st.tuples(st.sampled_from((*names, "c")), near), min_size=1, max_size=4))
    value: Expr = Const(0.125)
    for number, (name, offset) in enumerate(reads):
        value = value + Const(0.5 / (number + 2)) * Read(name, offset)
    box = draw(boxes_in(grid)) if draw(st.booleans()) else grid.box
    used = tuple(fields[name] for name in dict.fromkeys((target, *(name for name, _ in reads))))
    return Update(f"update of {target}", box, (Assignment(target, value),), used)


@st.composite
def reaches(draw: st.DrawFn, grid: Grid, most: int) -> list[tuple[int, int]]:
    """How many cells below and above its own an update reads along each axis: at most so many, not farther than once
    around the grid, and such that some cell has all of them inside fixed edges.
    """
    found: list[tuple[int, int]] = []
    for extent, kind in zip(grid.shape, grid.boundary, strict=True):
        below = draw(st.integers(0, min(most, extent - (kind == "fixed"))))
        found.append((below, draw(st.integers(0, min(most, extent - 1 - below if kind == "fixed" else extent)))))
    return found


@st.composite
def boxes_in(draw: st.DrawFn, grid: Grid) -> Box:
    """A box inside the grid, with at least one cell; whole along periodic axes, as confined fields are."""
    spans = [sorted(draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))) for n in grid.shape]
    return Box(tuple(a for a, _ in spans), tuple(b + 1 for _, b in spans))


def loaded(plan: Layout, steps: int) -> InOrderExecutor:
    """An executor with the problem's first values."""
    executor = InOrderExecutor(plan, steps)
    load(executor)
    return executor


def results(executor: InOrderExecutor, slot: int) -> dict[str, Array]:
    """The global arrays of all state fields."""
    return {name: executor.gather(name, slot) for name in executor.layout.problem.state}


def alone(problem: Problem, steps: int) -> dict[str, Array]:
    """What one device finds, step by step: the definition of right."""
    plan = Layout(problem, Partition.over(problem.grid, 1), (1,))
    schedule = build(plan, Options(strategy="serial"), steps)
    executor = loaded(plan, steps)
    executor.execute(schedule, 1, 0)
    return results(executor, schedule.final)
