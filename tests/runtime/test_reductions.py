"""Reductions: the bits of the plain formula and the values of mathematics, however the grid is split and computed."""

from __future__ import annotations

import pickle
from copy import deepcopy
from functools import cache
from itertools import product
from math import fsum, sqrt
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reduction_problems import STEPS, problem

import peergrid
from peergrid import Box, Grid, Options, Problem, Simulation, reduction, stencil
from peergrid.codegen.reductions import CLASSES, GROUP, LEAF
from peergrid.grid import Array, Boundary
from peergrid.grid.partition import Partition
from peergrid.resolve import default_options
from peergrid.runtime.devices import parse_devices
from peergrid.schedule.build import MOST_REPEATED
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil.reduction import KINDS, ReductionKind, Series


def run(problem: Problem, steps: int = STEPS, **options) -> dict[str, Series]:
    with Simulation(problem, steps, **options) as simulation:
        simulation.run(steps // 3)  # a run in parts is the same run
        simulation.run(steps - steps // 3)
        return dict(simulation.result().reductions)


def plain(kind: ReductionKind, values: Array, box: Box, shape: tuple[int, ...]) -> float:
    """The order of `codegen.reductions`, cell by cell. values: on the box."""
    start = {"max": -np.inf, "min": np.inf}.get(kind, 0.0)

    def combine(one: float, two: float) -> float:
        if kind in ("max", "min"):
            return max(one, two) if kind == "max" else min(one, two)
        return one + two

    def halved(found: list[float]) -> float:
        while len(found) > 1:
            half = len(found) // 2
            found = [combine(a, b) for a, b in zip(found[:half], found[half:], strict=True)]
        return found[0]

    across = -(-shape[-1] // LEAF)
    leaves: dict[int, list[float]] = {}
    for index in product(*(range(a, b) for a, b in zip(box.lo, box.hi, strict=True))):
        row = int(np.ravel_multi_index(index[:-1], shape[:-1])) if len(shape) > 1 else 0
        value = float(values[tuple(i - a for i, a in zip(index, box.lo, strict=True))])
        leaf = leaves.setdefault(row * across + index[-1] // LEAF, [start] * CLASSES)
        place = index[-1] % LEAF % CLASSES
        leaf[place] = combine(leaf[place], value * value if kind == "l2" else value)
    groups: dict[int, list[float]] = {}
    for number, leaf in leaves.items():
        lanes = [combine(combine(*leaf[k : k + 2]), combine(*leaf[k + 2 : k + 4])) for k in range(0, CLASSES, 4)]
        groups.setdefault(number // GROUP, [start] * GROUP)[number % GROUP] = halved(lanes)
    result = start
    for number in sorted(groups):
        result = combine(result, halved(groups[number]))
    return {"mean": result / box.size, "l2": sqrt(result) if kind == "l2" else 0.0}.get(kind, result)


@cache
def expected(shape: tuple[int, ...], edges: Boundary, dtype: str) -> dict[str, bytes]:
    """What one device finds by plain NumPy, one operation after another."""
    found = run(problem(shape, edges, dtype), devices="cpu:1", kernel="reference", options=Options("serial"))
    return {name: series.values.tobytes() for name, series in found.items()}


SHAPES = st.one_of(
    st.tuples(st.sampled_from((5, 100, 1023, 2500, 5000))),
    st.tuples(st.sampled_from((3, 70, 200)), st.sampled_from((4, 40, 1300))),
    st.tuples(st.sampled_from((3, 20)), st.sampled_from((4, 9)), st.sampled_from((5, 30))),
)


@settings(max_examples=60)
@given(
    SHAPES,
    st.sampled_from(("fixed", "periodic", "reflecting")),
    st.sampled_from(("float32", "float64")),
    st.sampled_from(sorted(STRATEGIES)),
    st.data(),
)
def test_same_bits(
    shape: tuple[int, ...], edges: Boundary, dtype: str, strategy: StrategyName, data: st.DataObject
) -> None:
    one = problem(shape, edges, dtype)
    inner = [data.draw(st.sets(st.integers(1, n - 1), max_size=2 if axis < 1 else 1)) for axis, n in enumerate(shape)]
    cuts = tuple((0, *sorted(places), n) for places, n in zip(inner, shape, strict=True))
    split = Partition(one.grid, tuple(len(c) - 1 for c in cuts), cuts)
    depth = data.draw(st.integers(1, 3))
    options = Options(strategy, depth, data.draw(st.none() | st.integers(1, depth)))
    kernel = data.draw(st.sampled_from(("compiled", "reference")))
    found = run(one, devices=f"cpu:{split.devices}", split=split, options=options, kernel=kernel)
    assert {name: series.values.tobytes() for name, series in found.items()} == expected(shape, edges, dtype)


@pytest.mark.parametrize("shape", [(2500,), (70, 1300), (9, 9, 30)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_order_is_the_one_that_is_said_and_the_values_are_right(shape: tuple[int, ...], dtype: str) -> None:
    one = problem(shape, "fixed", dtype)
    c, found = one.fields["c"].global_array(), run(one, devices="cpu:2")
    states = [one.fields["u"].global_array()]
    with Simulation(one, STEPS, devices="cpu:1") as simulation:
        for _ in range(STEPS):
            simulation.run(1)
            states.append(simulation.gather("u"))
    for reduced in one.reductions:
        series = found[reduced.name]
        assert series.steps.tolist() == list(range(reduced.every, STEPS + 1, reduced.every))
        for number, value in zip(series.steps, series.values, strict=True):
            u, before = states[number], states[number - 1]
            values = {
                "energy": c * u * u,
                "change": u - before,
                "slope": abs(u[..., 1:] - u[..., :-1]),
                "looked": one.tables["table"].values[np.minimum(3 * abs(u), 6).astype(int)],
            }.get(reduced.name, u)[reduced.box.slices((0,) * len(shape))]
            assert value == plain(reduced.kind, values, reduced.box, shape)
            exact = fsum(values.astype(float).ravel() ** (2 if reduced.kind == "l2" else 1))
            mean, root = exact / values.size, sqrt(abs(exact))
            right = {"sum": exact, "mean": mean, "l2": root, "max": values.max(), "min": values.min()}[reduced.kind]
            assert value == pytest.approx(right, rel=1e-12)


def test_a_field_that_keeps_the_value_before_the_step_serves_as_such() -> None:
    """A wave has it anyway: then no cycle is cut to one step for it."""
    grid = Grid((40,), "periodic", "float64")
    u = grid.field("u", np.sin(np.arange(40) * np.pi / 20))

    @stencil
    def wave(u):
        u.next[0] = 2 * u[0] - u.prev[0] + 0.2 * (u[-1] - 2 * u[0] + u[1])

    @reduction("l2", every=4)
    def speed(u):
        return u[0] - u.prev[0]

    one = Problem.of(wave(u), reductions=speed(u))
    assert one.reductions[0].previous == frozenset()
    found = run(one, 12, devices="cpu:2", options=Options("async", 4))["speed"]
    states = [one.fields["u"].global_array()]
    with Simulation(Problem.of(wave(u)), 12, devices="cpu:1") as simulation:
        for _ in range(12):
            simulation.run(1)
            states.append(simulation.gather("u"))
    assert found.values == pytest.approx([np.linalg.norm(states[n] - states[n - 1]) for n in (4, 8, 12)], rel=1e-12)
    # confined to a part, the field holds the value before the step only there
    part = Problem.of([wave(u).within(Box((0,), (10,))), step_line(u)], reductions=speed(u))
    assert part.reductions[0].previous == {"u.prev"}


@pytest.mark.parametrize("offset", [2, -2])
def test_a_read_across_a_reflecting_edge_asks_for_no_more_cells_than_a_device_has(offset: int) -> None:
    grid = Grid((12,), "reflecting", "float64")
    u = grid.field("u", np.arange(12.0) ** 2)
    total = reduction("sum", name="total")(lambda u: u[offset])
    one = Problem.of(step_line(u), reductions=total(u))
    wanted = run(one, 3, devices="cpu:1")["total"].values
    for devices in ("cpu:1", "cpu:2", "cpu:3"):
        found = run(one, 3, devices=devices, kernel="reference", options=Options("serial", 1))["total"].values
        assert np.array_equal(found, wanted), devices


@pytest.mark.parametrize("kernel", ["compiled", "reference"])
def test_a_field_with_values_one_step_before_the_first_is_reduced(kernel: Literal["compiled", "reference"]) -> None:
    u = Grid((8,), dtype="float64").field("u", 1.0, prev=0.0)
    onwards = stencil(lambda u: u.next.__setitem__(0, 2 * u[0] - u.prev[0]))
    highest = reduction("max", name="highest")(lambda u: u[0])
    change = reduction("max", name="change")(lambda u: u[0] - u.prev[0])
    one = Problem.of(onwards(u), reductions=[highest(u), change(u)])
    found = run(one, 3, devices="cpu:2", kernel=kernel)
    assert found["highest"].values.tolist() == [2, 3, 4]
    assert found["change"].values.tolist() == [1, 1, 1]
    assert peergrid.run(onwards(u), 3, norm="u", devices="cpu:1").norms == pytest.approx([8**0.5] * 3)


def test_the_value_before_the_step_is_that_of_cells_that_never_change_too() -> None:
    """There `u.prev` has what was given one step before the first, in all steps."""
    u = Grid((8,), dtype="float64").field("u", 1.0, prev=0.0)
    onwards = stencil(lambda u: u.next.__setitem__(0, 2 * u[0] - u.prev[0]))
    change = reduction("sum", name="change")(lambda u: u[0] - u.prev[0])
    assert run(Problem.of(onwards(u), reductions=change(u)), 3, devices="cpu:2")["change"].values.tolist() == [8, 8, 8]
    inside = Problem.of(onwards(u).within(Box((1,), (7,))), reductions=change(u))
    assert run(inside, 3, devices="cpu:2")["change"].values.tolist() == [6, 6, 6]


@stencil
def decay(u):
    u.next[0, 0] = 0.5 * u[0, 0]


@reduction("sum")
def aslant(u):
    return u[1, -1] * u[-1, -1]


@pytest.mark.parametrize("depth", [1, 2])
def test_cells_of_a_neighbour_are_read_only_across_a_periodic_edge(depth: int) -> None:
    """Nothing but the reduction reads beside a cell, and in the first column all that it reads lies in the last one."""
    grid = Grid((9, 6), boundary="periodic", dtype="float64")
    first = np.random.default_rng(3).integers(-9, 9, grid.shape)
    u = grid.field("u", first)
    problem = Problem.of(decay(u), reductions=[aslant(u).within(Box((0, 0), (9, 1)))])
    last = 0.5 * first[:, -1]
    found = run(problem, 3, devices="cpu:3", split=(3, 1), options=Options("overlap", depth=depth))["aslant"]
    assert found.values[0] == (np.roll(last, -1) * np.roll(last, 1)).sum()


@stencil
def step_line(u):
    u.next[0] = 0.5 * (u[-1] + u[1])


def test_far_apart_reductions_cut_no_other_schedule() -> None:
    """Several that repeat together only after more steps than a schedule has."""
    u = Grid((30,), "periodic", "float64").field("u", np.arange(30.0))
    often, seldom = 97, 101
    assert often * seldom > MOST_REPEATED
    total = reduction("sum", every=often, name="total")(lambda u: u[0])
    largest = reduction("max", every=seldom, name="largest")(lambda u: u[0])
    one = Problem.of(step_line(u), reductions=[total(u), largest(u)])
    found = run(one, 310, devices="cpu:2")
    assert found["total"].steps.tolist() == [97, 194, 291]
    assert found["largest"].steps.tolist() == [101, 202, 303]
    with Simulation(Problem.of(step_line(u)), 310, devices="cpu:1") as simulation:
        for n in range(1, 304):
            simulation.run(1)
            if n in (97, 303):
                state = simulation.gather("u")
                assert found["total" if n == 97 else "largest"].values[n // 97 - 1 if n == 97 else 2] == pytest.approx(
                    state.sum() if n == 97 else state.max(), rel=1e-12
                )


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_finite_show(kind: ReductionKind) -> None:
    grid = Grid((6, 5))
    start = np.ones(grid.shape)
    start[2, 3] = np.nan
    u = grid.field("u", 1.0)
    hole = grid.field("hole", 0.0)

    @stencil
    def spoil(u, hole):
        u.next[0, 0] = u[0, 0] / hole[0, 0] - u[0, 0] / hole[0, 0]

    one = Problem.of(spoil(u, hole), reductions=reduction(kind, name="it")(lambda u: u[0, 0])(u))
    assert np.isnan(run(one, 3, devices="cpu:2")["it"].values).all()


def test_cycles_are_no_longer_than_the_steps_between_reductions() -> None:
    """The depth that is chosen, so that no ghost cells are sent that nobody needs."""
    u = Grid((64,)).field("u")
    devices = parse_devices("cpu:2")
    for every, depth in ((1, 1), (4, 4), (100, 8)):
        one = Problem.of(step_line(u), reductions=reduction("sum", every, "s")(lambda u: u[0])(u))
        assert default_options(devices, one).depth == depth
    changing = Problem.of(step_line(u), reductions=reduction("sum", 4, "s")(lambda u: u[0] - u.prev[0])(u))
    assert default_options(devices, changing).depth == 3


def test_run_gives_them_too() -> None:
    u = Grid((32,), dtype="float64").field("u", np.arange(32.0))
    largest = reduction("max", every=5, name="largest")(lambda u: u[0])
    result = peergrid.run(Problem.of(step_line(u), reductions=largest(u)), steps=10, devices="cpu:2")
    assert result.reductions["largest"].steps.tolist() == [5, 10]
    assert (result.reductions["largest"].values == 31.0).all()  # the fixed edge


def test_results_and_states_can_be_pickled() -> None:
    u = Grid((32,), dtype="float64").field("u", np.arange(32.0))
    one = Problem.of(step_line(u), reductions=reduction("max", name="largest")(lambda u: u[0])(u))
    with Simulation(one, 3, devices="cpu:2") as simulation:
        simulation.run(3)
        state, result = simulation.state(), simulation.result()
    for kept, again in ((state.records, pickle.loads(pickle.dumps(state)).records), (result, deepcopy(result))):
        assert np.array_equal(again.reductions["largest"].values, kept.reductions["largest"].values)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 12), st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_a_run_in_any_parts_is_the_same_run(depth: int, every: int, parts: list[int]) -> None:
    """Periods that begin beside the steps at which reductions are due may end in the other slot."""
    u = Grid((64,), "periodic", "float64").field("u", np.linspace(0.0, 1.0, 64) ** 3)
    total = reduction("sum", every=every, name="total")(lambda u: u[0])
    one = Problem.of(step_line(u), reductions=[total(u)])
    whole = peergrid.run(one, sum(parts), devices="cpu:1", options=Options("serial"))
    with Simulation(
        one, sum(parts), devices="cpu:2", options=Options("serial", depth), kernel="reference"
    ) as simulation:
        for steps in parts:
            simulation.run(steps)
        result = simulation.result()
    assert result.sha256 == whole.sha256
    assert np.array_equal(result.reductions["total"].values, whole.reductions["total"].values)
