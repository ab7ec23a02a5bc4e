"""The norm of every step on virtual devices: the bits of the plain formula, however the grid is split and computed."""

from __future__ import annotations

import ctypes
import ctypes.util
from concurrent.futures import ThreadPoolExecutor
from functools import cache, reduce
from itertools import pairwise, product

import numpy as np
import pytest
from executions import load
from hypothesis import given, settings
from hypothesis import strategies as st
from inorder import InOrderExecutor
from runtime_problems import PROBLEMS, random_heat, yee

import peergrid
from peergrid import Grid, Options, Problem, Simulation, UsageError, reduction, stencil
from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS
from peergrid.codegen.reductions import LEAF, leaves, total
from peergrid.grid import Array
from peergrid.grid.box import subtract
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.norm import compiled_sums
from peergrid.runtime.memory import allocate
from peergrid.runtime.norms import Norms
from peergrid.runtime.reductions import grouped
from peergrid.runtime.reference_norm import add_square, reference_sums
from peergrid.schedule import build, layout
from peergrid.schedule.access import accesses
from peergrid.schedule.ops import Compute
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.simulate import CHECK_EVERY
from peergrid.stencil import write_box
from peergrid.stencil.reduction import NORM, norm_of

STEPS = 5
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
FMA = {np.dtype("float32"): (LIBM.fmaf, ctypes.c_float), np.dtype("float64"): (LIBM.fma, ctypes.c_double)}
for function, number in FMA.values():
    function.restype, function.argtypes = number, (number,) * 3


@stencil
def one_dimensional(u):
    u.next[0] = 0.5 * u[0] + 0.2 * (u[-1] + u[1])


@stencil
def two_dimensional(u):
    u.next[0, 0] = 0.4 * u[0, 0] + 0.2 * (u[-1, 0] + u[0, -1] + u[1, 1])


@stencil
def three_dimensional(u):
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.2 * (u[-1, 0, 0] + u[0, 1, 0])


@stencil
def forgetful(u, given):
    u.next[0, 0] = given[0, 0]


def plain_norm(before: Array, after: Array) -> float:
    """The tree of sums cell by cell, with the fused multiply-add of the C library."""
    rows = (after - before).reshape(len(before), -1)
    fused, whole = FMA[rows.dtype][0], 0.0
    for top in range(0, len(rows), NORM_ROWS):
        leaves = [0.0] * 256
        for left in range(0, rows.shape[1], NORM_COLUMNS):
            halves = [rows.dtype.type(0)] * 2
            for row, x in product(rows[top : top + NORM_ROWS], range(left, min(left + NORM_COLUMNS, rows.shape[1]))):
                half = (x - left) // (NORM_COLUMNS // 2)
                halves[half] = rows.dtype.type(fused(row[x], row[x], halves[half]))
            leaves[left // NORM_COLUMNS % 256] += float(halves[0] + halves[1])
        while len(leaves) > 1:
            leaves = [a + b for a, b in zip(leaves[: len(leaves) // 2], leaves[len(leaves) // 2 :], strict=True)]
        whole += leaves[0]
    return float(np.sqrt(whole))


def random_field(shape: tuple[int, ...], periodic: bool, dtype: str) -> Problem:
    grid = Grid(shape, "periodic" if periodic else "fixed", dtype)
    u = grid.field("u", np.random.default_rng(sum(shape)).standard_normal(shape))
    return Problem.of((one_dimensional, two_dimensional, three_dimensional)[len(shape) - 1](u))


def reduced_norm(before: Array, after: Array) -> float:
    """The order of `codegen.reductions`, as NumPy carries it out on one device."""
    change = after - before
    shape = change.shape
    one = norm_of(Grid(shape, dtype=str(change.dtype)).field("u"))
    rows = change.reshape(-1, shape[-1])
    cuts = range(0, shape[-1], LEAF)
    found = np.stack([leaves("l2", rows[:, first : first + LEAF], 0) for first in cuts], axis=1)
    return total("l2", grouped(one, shape, found), change.size)


@cache
def expected(shape: tuple[int, ...], periodic: bool, dtype: str) -> bytes:
    """The plain norms of the states that one device goes through."""
    norm = plain_norm if len(shape) == 2 else reduced_norm
    problem = random_field(shape, periodic, dtype)
    states = [problem.fields["u"].global_array()]
    with Simulation(problem, STEPS, devices="cpu:1", kernel="reference") as simulation:
        for _ in range(STEPS):
            simulation.run(1)
            states.append(simulation.gather("u"))
    return np.array([norm(before, after) for before, after in pairwise(states)]).tobytes()


SHAPES = st.one_of(
    st.tuples(st.integers(3, 100)),
    st.tuples(st.integers(3, 100), st.integers(3, 40)),
    st.tuples(st.integers(3, 60), st.integers(3, 6), st.integers(3, 6)),
)


@settings(max_examples=60)
@given(SHAPES, st.booleans(), st.sampled_from(("float32", "float64")), st.sampled_from(sorted(STRATEGIES)), st.data())
def test_same_bits(
    shape: tuple[int, ...], periodic: bool, dtype: str, strategy: StrategyName, data: st.DataObject
) -> None:
    problem = random_field(shape, periodic, dtype)
    inner = [data.draw(st.sets(st.integers(1, n - 1), max_size=2 if axis < 1 else 1)) for axis, n in enumerate(shape)]
    cuts = tuple((0, *sorted(places), n) for places, n in zip(inner, shape, strict=True))
    split = Partition(problem.grid, tuple(len(c) - 1 for c in cuts), cuts)
    options = Options(strategy, data.draw(st.integers(1, 3)))
    kernel = data.draw(st.sampled_from(("compiled", "reference")))
    devices = f"cpu:{split.devices}"
    with Simulation(
        problem, STEPS, devices=devices, split=split, options=options, kernel=kernel, norm="u"
    ) as simulation:
        simulation.run(2)  # a run in parts is the same run
        assert simulation.norms().tobytes() == expected(shape, periodic, dtype)[:16]
        simulation.trace(1)
        simulation.run(STEPS - 3)
        assert simulation.norms().tobytes() == expected(shape, periodic, dtype)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
def test_a_result_has_the_norms_of_all_steps(devices: str) -> None:
    """More steps than lie between two looks for values that are not finite."""
    shape, steps = (40, 30), CHECK_EVERY + STEPS
    problem = random_field(shape, True, "float64")
    found = peergrid.run(problem, steps, devices=devices, norm="u").norms
    assert found is not None
    assert len(found) == steps
    assert found[:STEPS].tobytes() == expected(shape, True, "float64")
    assert peergrid.run(problem, STEPS, devices=devices).norms is None
    with pytest.raises(UsageError, match="one of the fields that change \\(u\\), got 'k'"):
        peergrid.run(problem, STEPS, devices=devices, norm="k")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_wide_grids_on_many_devices(strategy: StrategyName) -> None:
    """More blocks than the tree has leaves, more devices than bands, parts of a device in whole bands and not."""
    shape = (100, 2100)
    for devices, depth in ((1, 1), (2, 3), (7, 1)):
        options = Options(strategy, depth)
        with Simulation(
            random_field(shape, True, "float32"), 3, devices=f"cpu:{devices}", options=options, norm="u"
        ) as simulation:
            simulation.run(3)
            assert simulation.norms().tobytes() == wide(shape)


@cache
def wide(shape: tuple[int, ...]) -> bytes:
    problem, options = random_field(shape, True, "float32"), Options("serial")
    executor = InOrderExecutor(layout(problem, Partition.over(problem.grid, 1), options), 3, norm="u")
    load(executor)
    executor.execute(build(executor.layout, options, 3), 1, 0)
    start = problem.fields["u"].global_array()
    with Simulation(problem, 1, devices="cpu:1", kernel="reference") as simulation:
        simulation.run(1)
        assert executor.norms(1)[0] == plain_norm(start, simulation.gather("u"))
    return executor.norms(3).tobytes()


def test_a_field_of_some_cells_counts_where_it_is() -> None:
    found = []
    for devices in (1, 3):
        with Simulation(yee(), STEPS, devices=f"cpu:{devices}", norm="psi") as simulation:
            states = [simulation.gather("psi")]
            for _ in range(STEPS):
                simulation.run(1)
                states.append(simulation.gather("psi"))
            found.append(simulation.norms())
    assert found[0].tobytes() == found[1].tobytes()
    changes = [np.linalg.norm(after.astype(np.float64) - before) for before, after in pairwise(states)]
    np.testing.assert_allclose(found[0], changes, rtol=1e-6)
    assert changes[1] > 0


@settings(max_examples=200)
@given(st.sampled_from((32, 64)), st.data())
def test_squares_are_added_with_one_rounding(width: int, data: st.DataObject) -> None:
    kind, powers = np.dtype(f"float{width}").type, st.integers(-30, 30)
    small = st.floats(-2, 2, width=width, allow_subnormal=False)
    value = kind(np.ldexp(data.draw(small), data.draw(powers)))
    near = value * value * kind(2.0 ** data.draw(powers))  # so that roundings meet
    total = np.abs(data.draw(st.sampled_from((near, kind(data.draw(small))))))
    found = add_square(np.array([value], kind), np.array([total], kind))
    assert found.dtype == kind
    assert found[0] == FMA[np.dtype(kind)][0](value, value, total)


@pytest.mark.parametrize(("value", "total"), [(np.float32(4097), 2.0**-60), (np.float64(2**27 - 1), 2.0**-60)])
def test_what_is_just_above_the_middle_of_two_numbers_is_rounded_up(value: np.floating, total: float) -> None:
    kind = value.dtype.type
    found = add_square(np.array([value]), np.array([total], kind))[0]
    assert found == FMA[value.dtype][0](value, value, total) == np.nextafter(value * value, kind(np.inf))


@given(st.integers(1, 80), st.integers(1, 140), st.integers(0, 3), st.sampled_from(("float32", "float64")))
def test_compiled_sums_are_those_of_numpy(rows: int, across: int, beside: int, dtype: str) -> None:
    stored = np.random.default_rng(rows).standard_normal((2, rows, across + beside)).astype(dtype)
    before, after = stored[:, :, beside:]
    assert compiled_sums(dtype, None)(before, after).tobytes() == reference_sums(before, after).tobytes()


def test_parts_come_in_any_order_from_many_threads() -> None:
    """Devices are steps apart, and parts of a band come from several at once."""
    problem, options = random_heat((60, 50)), Options("overlap")
    plan = layout(problem, Partition(problem.grid, (3, 2)), options)
    pieces = [op for op in build(plan, options, 1).ops if hasattr(op, "box")]
    memories = [allocate(plan, device) for device in range(plan.devices)]
    random = np.random.default_rng(1)
    for memory in memories:
        for block in memory.state["u"]:
            block.array[...] = np.arange(block.array.size, dtype=np.float32).reshape(block.array.shape) % 7
        memory.state["u"][1].array[...] *= np.float32(1.1)
    norms, steps = Norms(plan, "u", 40, reference_sums), 40
    jobs = [(op, step) for op in pieces for step in range(steps)]
    random.shuffle(jobs)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda job: norms.add(memories[job[0].device], *job), jobs))
    found = norms.norms(steps)
    assert found[0] > 0
    assert set(found) == {found[0]}
    assert not norms._open


@pytest.mark.parametrize("name", [*PROBLEMS, "forgetful"])
def test_what_a_norm_reads_is_what_the_proof_knows_of(name: str) -> None:
    """Every change of a cell is told from two values that the schedule's proof takes for read and written there."""
    grid = Grid((12, 10))
    problem = Problem.of(forgetful(grid.field("u"), grid.field("given"))) if name == "forgetful" else PROBLEMS[name]()
    options = Options("overlap", 2, 1)
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    for op in build(plan, options, 1).ops:
        if isinstance(op, Compute):
            own, known = op.box & plan.partition.owned(op.device), accesses(plan, op)
            for field, writes in product(problem.state, (False, True)):
                boxes = [one.box for one in known if one.buffer[1] == field and one.writes == writes]
                counted = write_box(problem, field, own) if writes else own & problem.fields[field].box
                assert not any(part.size for part in reduce(subtract, boxes, (counted,)))


@pytest.mark.parametrize("name", ["heat_cube", "yee"])
def test_a_norm_that_is_a_reduction_is_none_of_the_users(name: str) -> None:
    """Of a field in 3D, and of one on some cells of a 2D grid."""
    problem, field = PROBLEMS["heat_cube"]() if name == "heat_cube" else yee(), "u" if name == "heat_cube" else "psi"
    with Simulation(problem, STEPS, devices="cpu:2", options=Options("async", 4, 2), norm=field) as simulation:
        simulation.run(STEPS)
        assert (simulation.norms() > 0).any()
        assert not simulation.reductions()
        assert simulation.problem is problem
        assert simulation.result().norms.tobytes() == simulation.norms().tobytes()
    own = reduction("max", name=NORM)(lambda u: u[0, 0, 0])
    clash = Problem.of(three_dimensional(u := Grid((5, 6, 7)).field("u")), reductions=own(u))
    with pytest.raises(UsageError, match=f"A reduction is called '{NORM}'"):
        Simulation(clash, STEPS, devices="cpu:1", norm="u")


def test_norms_that_cannot_be_had_are_refused() -> None:
    with pytest.raises(UsageError, match=r"one of the fields that change \(u\), got 'v'"):
        Simulation(random_heat((30, 30)), 4, devices="cpu:2", norm="v")
    with pytest.raises(UsageError, match="a pass on virtual devices makes one step, got block = 2; leave it out"):
        Simulation(random_heat((30, 30)), 4, devices="cpu:2", options=Options("async", 4, 2), norm="u")
    with Simulation(random_heat((30, 30)), 4, devices="cpu:2", options=Options("async", 4), norm="u") as simulation:
        assert simulation.notes == ("A pass makes at most one step of this problem on these devices, not 4.",)
