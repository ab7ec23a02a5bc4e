"""What a problem takes on a machine: kernels priced, memory to the byte, the choice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from predict_problems import cube, flat

from peergrid.bench.problems import radar
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.costs.families import FAMILIES
from peergrid.costs.machine import Line
from peergrid.costs.machines import bundled, machine_named
from peergrid.grid import Box
from peergrid.predict.choice import CANDIDATES, candidates, depths_of, ranked, reason
from peergrid.predict.forecast import Forecaster, fits
from peergrid.predict.kernels import duration
from peergrid.predict.launches import KernelWork, block_tile, launches, persistent
from peergrid.predict.scaling import fewest
from peergrid.runtime.cuda.memory.fields import Plan
from peergrid.schedule import Options, build
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.ops import Compute, Copy
from peergrid.schedule.strategies import STRATEGIES, StrategyName

H200 = machine_named("h200-x4")


works = st.builds(
    KernelWork,
    st.sampled_from([*FAMILIES, "of another kind"]),
    st.just(100),
    st.just(100),
    st.floats(1e3, 1e11),
    st.floats(1e3, 1e11),
    st.floats(0, 1e14),
    st.floats(0, 1e9),
)


@given(works, st.sampled_from(["moved", "results", "chain"]), st.floats(1, 100), st.sampled_from(list(bundled())))
def test_more_work_never_takes_less(work: KernelWork, what: str, factor: float, name: str) -> None:
    more = replace(work, **{what: getattr(work, what) * factor})
    machine = machine_named(name)
    assert duration(more, machine).alone >= duration(work, machine).alone * (1 - 1e-9)
    assert duration(work, machine).busy <= duration(work, machine).alone * (1 + 1e-9)


@given(works, st.floats(1, 10))
def test_faster_memory_never_takes_longer(work: KernelWork, factor: float) -> None:
    fast = replace(H200, bandwidth=H200.bandwidth * factor, cache_bandwidth=H200.cache_bandwidth * factor)
    assert duration(work, fast).alone <= duration(work, H200).alone * (1 + 1e-9)


@pytest.mark.parametrize("depth", [1, 4])
def test_a_pass_moves_each_cell_once_in_and_once_out(depth: int) -> None:
    problem = flat(4096, 2048)
    asked = Forecaster(problem, H200, 1)
    found = asked.arrangement(Options("async", depth=depth))
    (op, *_) = [op for op in found.schedule.ops if isinstance(op, Compute)]
    works = launches(found.passes[depth], found.site(0), (op.box,))
    assert sum(work.moved for work in works) == pytest.approx(4096 * 2048 * 8, rel=0.06)


def test_a_large_step_takes_as_long_as_its_memory() -> None:
    """One step per pass cannot pass the copy bandwidth, and these kernels come close to it."""
    found = Forecaster(flat(16384, 16384), H200, 1).forecast(Options("async", depth=1))
    least = 16384**2 * 8 / H200.bandwidth
    assert least <= found.seconds_per_step <= 1.15 * least


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_has_a_forecast(strategy: StrategyName) -> None:
    found = Forecaster(flat(1024, 512), H200, 2).forecast(Options(strategy, depth=1))
    assert 1e-6 < found.seconds_per_step < 1e-3
    assert 0 <= found.exposed < 1


def test_blocks_of_persistent_kernels_wait_for_the_lanes_with_the_most_to_do() -> None:
    """A tile with absorbers costs more than the same tile without, and several steps more than one."""
    asked, costs = Forecaster(radar(384, 384, 10), H200, 1), []
    for depth in (1, 8):
        found = asked.arrangement(Options("persistent", depth=depth))
        assert isinstance(found.fused, PersistentKernel)
        corner = Box((0, 0), (24, 32))
        costs.append([block_tile(found.fused, box) for box in (corner, corner.shift((150, 150)))])
        ((boundary, interior),) = persistent(found.fused, found.site(0), found.plan.partition.owned(0))
        assert boundary.chain >= max(costs[-1])
        assert interior.chain == interior.moved == 0
    assert all(edge > middle for edge, middle in costs)
    assert costs[1][0] > 4 * costs[0][0]


def test_several_steps_per_pass_pay_in_three_dimensions_too() -> None:
    problem = cube(256)
    asked = Forecaster(problem, H200, 1)
    once, several = (asked.forecast(Options("async", depth=depth)).seconds_per_step for depth in (1, 3))
    assert several < once


def test_memory_is_that_of_the_run_to_the_byte() -> None:
    asked = Forecaster(flat(1000, 600), H200, 2)
    found = asked.forecast(Options("overlap", depth=2), total_steps=77)
    plan = Plan(asked.arrangement(found.options).plan, 77, asked.gpu)
    assert found.memory == tuple(plan.bytes(device) for device in range(2))


def test_the_largest_grid_that_fits_does_and_one_row_more_does_not() -> None:
    problem = flat(1000, 600)
    least = Forecaster(problem, H200, 1).forecast(Options("async", depth=1))
    exact = replace(H200, memory=max(least.taken) + H200.reserved)
    assert fits(least, exact)
    assert not fits(Forecaster(flat(1901, 600), exact, 1).forecast(Options("async", depth=1)), exact)
    assert fewest(flat(1901, 600), exact, Options("async", depth=1), 1000) == 2


def test_the_fastest_arrangement_comes_first_and_says_why() -> None:
    found = ranked(Forecaster(flat(8192, 8192), H200, 4))
    assert [one.seconds_per_step for one in found] == sorted(one.seconds_per_step for one in found)
    assert found[0].options.depth > 1
    assert f"'{found[0].options.strategy}'" in reason(found[0], found)


@pytest.mark.parametrize("side", [16, 64])
def test_several_steps_are_looked_at_where_passes_of_them_are_not_worth_it(side: int) -> None:
    """Calls take most of the time of small grids: 64³ take 4.2 µs a step, and 2.5 with four steps in a pass."""
    problem = cube(side)
    assert depths_of(Forecaster(problem, machine_named("h200-x2"), 1)) == (4, 1)
    assert depths_of(Forecaster(problem, machine_named("h200-x2"), 2), most=1) == (1,)


@pytest.mark.parametrize(("side", "looked"), [(1024, True), (16384, False)])
def test_single_steps_are_not_looked_at_where_memory_alone_makes_them_slower(side: int, looked: bool) -> None:
    asked = Forecaster(flat(side, side), H200, 1)
    found = ranked(asked)
    assert any(one.options.depth == 1 for one in found) == looked
    single = asked.forecast(Options("persistent", depth=1))
    assert looked or single.seconds_per_step > 1.5 * found[0].seconds_per_step
    assert ranked(asked, depths=(1,)), "a depth that is asked for is looked at"


def test_halos_take_the_route_that_is_predicted_to_be_the_fastest() -> None:
    """By costs alone they are stored, for hosts issue longer than memory moves; but beside tiles that stay."""
    asked = Forecaster(cube(408), machine_named("h200-x8"), 8)
    best = ranked(asked, ("overlap",), depths=(4,), orders=("all",))[0]
    assert best.options.route == "copy"
    by_cost = ranked(asked, ("overlap",), depths=(4,), usual=Options(route="store"), orders=("all",))[0]
    assert by_cost.options.route == "store"
    assert by_cost.seconds_per_step > 1.03 * best.seconds_per_step
    assert by_cost.seconds_per_step == pytest.approx(asked.forecast(Options("overlap", depth=4)).seconds_per_step)


def test_an_order_is_taken_where_halos_get_in_each_others_way() -> None:
    slow = Line(2e-6, 4e10)
    machine = replace(machine_named("h200-x8"), copy=slow, store=slow)
    asked = Forecaster(cube(408), machine, 8)
    orders = {ranked(asked, ("overlap",), depths=(4,), orders=(order,))[0].options.order for order in ORDERS}
    assert orders == set(ORDERS)  # as named
    free = ranked(asked, ("overlap",), depths=(4,))[0]
    named = [asked.forecast(replace(free.options, order=order)).seconds_per_step for order in ORDERS]
    assert free.seconds_per_step <= 1.03 * min(named)
    assert max(named) > 1.03 * min(named)


def test_boxes_take_the_place_of_slabs_where_slow_links_show() -> None:
    problem, slow = cube(256), Line(1e-6, 2e9)
    machine = replace(machine_named("h200-x8"), copy=slow, store=slow)
    assert ranked(Forecaster(problem, machine_named("h200-x8"), 8))[0].partition.parts == (8, 1, 1)
    first = ranked(Forecaster(problem, machine, 8), ("overlap",), depths=(1,))[0]
    assert first.partition.parts == (2, 2, 2)
    slabs = Forecaster(problem, machine, 8).forecast(first.options)
    assert first.seconds_per_step < slabs.seconds_per_step


def test_a_trial_has_the_first_few_a_graph_every_order_and_the_usual_route() -> None:
    found = ranked(Forecaster(flat(8192, 8192), H200, 4))
    ways = candidates(found, Options("overlap"))
    assert ways[:CANDIDATES] == tuple(replace(one.options, block=None) for one in found[:CANDIDATES])
    assert "graph" in {way.strategy for way in ways}
    copies = next(one.options for one in found if not one.fused)
    assert {way.order for way in ways if (way.strategy, way.depth) == (copies.strategy, copies.depth)} == set(ORDERS)
    routed = replace(found[0], fused=False, options=Options("overlap", depth=4, route="store"))
    assert Options("overlap", depth=4) in candidates((routed,), Options("overlap"))
    assert {way.order for way in candidates(found, Options("overlap", order="all"), ("all",))} == {"all"}


def test_the_timeline_of_a_whole_schedule_has_every_pass_and_halo_once() -> None:
    asked = Forecaster(flat(1000, 600), H200, 2)
    options = Options("overlap", depth=2)
    schedule = build(asked.plan(options), options, 6)
    lowered, spans = asked.spans(schedule)
    found = [lowered.ops[span.op] for span in spans]
    assert {op.level for op in found if isinstance(op, Compute)} == {0, 2, 4}
    assert len(found) == len(set(found))
    assert any(isinstance(op, Copy) for op in found)
    assert all(0 <= span.start <= span.end for span in spans)
