"""Schedules carried out on paper: bounds and order that hold whatever the costs."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.costs.machine import Line
from peergrid.costs.machines import machine_named
from peergrid.errors import UsageError
from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.predict.kernels import Duration
from peergrid.predict.operations import COSTS, Given, Timed
from peergrid.predict.simulation import simulate
from peergrid.runtime.cuda.lowering.passes import queued_passes
from peergrid.schedule import Options, Schedule, layout, one_iteration
from peergrid.schedule.ops import Compute, Copy, Flag, Op, Queue, Route, Semaphore, SignalOp, SignalWait
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.timeline import chrome
from peergrid.stencil import Problem, stencil

MACHINE = machine_named("h200-x4")


@stencil
def average(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def schedule_of(
    strategy: StrategyName, devices: int, depth: int, block: int | None = None, lowered: bool = False
) -> Schedule:
    grid = Grid((64, 32), boundary=("periodic", "fixed"))
    problem = Problem.of(average(grid.field("u")))
    options = Options(strategy, depth=depth, block=block)
    plan = layout(problem, Partition.over(grid, devices), options)
    schedule = one_iteration(plan, options)
    chain = queued_passes(schedule, tuple(range(devices)), lambda a, b: True) if lowered else ()
    return apply_passes(plan, schedule, chain)


def known(seconds: float, scale: float = 1.0, **changes: float) -> Given:
    """Passes of so many seconds, a tenth of which others may use; links so many times as fast."""
    machine = replace(MACHINE, copy=Line(MACHINE.copy.latency, MACHINE.copy.bandwidth * scale),
                      store=Line(MACHINE.store.latency, MACHINE.store.bandwidth * scale))  # fmt: skip
    machine = replace(machine, delays=replace(machine.delays, **changes))

    def passes(device: int, steps: int, boxes: tuple[Box, ...]) -> list[Timed]:
        share = sum(box.size for box in boxes) / 2048
        return [Timed(Duration(0.9 * seconds * share, seconds * share))]

    return Given(machine, 4, passes, lambda op: op.route)


drawn = st.tuples(st.sampled_from(list(STRATEGIES)), st.integers(1, 4), st.sampled_from([(1, None), (4, 2), (4, None)]))


@given(drawn, st.floats(1e-7, 1e-2), st.booleans())
def test_an_iteration_takes_at_least_the_busiest_device_and_at_most_everything_in_a_row(
    arranged: tuple[StrategyName, int, tuple[int, int | None]], seconds: float, lowered: bool
) -> None:
    strategy, devices, (depth, block) = arranged
    schedule, given = schedule_of(strategy, devices, depth, block, lowered), known(seconds)
    found = simulate(schedule, given)
    busy = [0.0] * devices
    alone = 0.0
    for op in schedule.ops:
        if isinstance(op, Compute):
            (timed,) = given.passes(op.device, op.steps, (op.box,))
            busy[op.device] += timed.duration.busy
            alone += timed.duration.alone
    machine = given.machine
    slowest = max(machine.calls.sync, machine.calls.copy, machine.delays.words, machine.host.latency)
    sent = sum(op.source_box.size * 4 / machine.host.bandwidth for op in schedule.ops if isinstance(op, Copy))
    extra = 8 * slowest * (len(schedule.ops) + 1) * devices
    assert max(busy) * (1 - 1e-3) <= found.seconds <= alone + sent + extra


@given(drawn, st.floats(1e-7, 1e-3), st.floats(1.0, 100.0), st.booleans())
def test_faster_links_and_shorter_delays_never_make_a_step_longer(
    arranged: tuple[StrategyName, int, tuple[int, int | None]], seconds: float, scale: float, lowered: bool
) -> None:
    strategy, devices, (depth, block) = arranged
    schedule = schedule_of(strategy, devices, depth, block, lowered)
    slow, fast = (simulate(schedule, known(seconds, one)).seconds for one in (1.0, scale))
    assert fast <= slow * (1 + 1e-3)
    late = simulate(schedule, known(seconds, words=MACHINE.delays.words * scale)).seconds
    assert late >= slow * (1 - 1e-3)


def test_overlap_hides_the_exchange_behind_a_long_interior() -> None:
    """The interior is 30 times as long as all else: hidden, a step takes as long as without an exchange."""
    schedule = schedule_of("overlap", 2, 1)
    assert len([op for op in schedule.ops if isinstance(op, Copy)]) > 0
    step = simulate(schedule, known(3e-3)).seconds / schedule.steps
    aside = simulate(schedule_of("serial", 2, 1), known(3e-3)).seconds / schedule.steps
    assert step < 3e-3 * 0.5 * 1.05
    assert aside > step


def test_words_tie_queues_across_iterations() -> None:
    """Each device awaits the other's last word: one of this iteration, and one of the iteration before."""
    there, back = Semaphore(1, "there"), Semaphore(0, "back")
    first, second = Queue(0, "main"), Queue(1, "main")
    ops = (SignalWait(0, first, back, 0), SignalOp(0, first, there, 1),
           SignalOp(0, second, back, 1), SignalWait(0, second, there, 1))  # fmt: skip
    schedule = replace(schedule_of("async", 2, 1), ops=ops)
    tied = simulate(schedule, known(1e-5, words=1.0)).seconds
    assert tied == pytest.approx(1.0, abs=0.01)
    ring = replace(schedule, ops=(ops[0], ops[1], ops[3], ops[2]))
    assert simulate(ring, known(1e-5, words=1.0)).seconds == pytest.approx(2.0, abs=0.01)


def test_a_graph_ends_with_all_of_its_queues() -> None:
    """Between two stretches of a graph nothing overlaps: a step of several passes takes the exchange in addition."""
    given = replace(known(1e-4), captured=True)
    as_built, lowered = (simulate(schedule_of("graph", 2, 4, 1, low), given).seconds for low in (False, True))
    assert lowered > as_built + given.machine.copy.latency


def test_an_engine_is_turned_to_once_for_copies_in_a_row() -> None:
    schedule = schedule_of("async", 2, 1)
    copies = sum(isinstance(op, Copy) for op in schedule.ops)
    assert copies == 8  # two halos of each device in each of two steps
    none, some = (simulate(schedule, known(1e-5, engine=seconds)).seconds for seconds in (0.0, 1e-3))
    assert some - none == pytest.approx(copies / 4 * 1e-3, rel=0.01)


def test_stores_wait_for_tiles_that_stay() -> None:
    schedule = schedule_of("overlap", 2, 1)
    free = replace(known(3e-3), route=lambda op: "store")
    hidden, waiting = (simulate(schedule, one).seconds for one in (free, replace(free, tiles_stay=True)))
    assert waiting > hidden + MACHINE.delays.start


def test_stores_of_high_priority_find_room_beside_an_interior() -> None:
    """The exchange takes what its link takes, however long the interior is that was launched before."""
    stored = replace(known(3e-3), route=lambda op: "store")
    assert longest_copy(schedule_of("overlap", 2, 1), stored) < 1e-5


@pytest.mark.parametrize("route", ["copy", "store"])
def test_messages_of_a_long_chain_travel_beside_each_other(route: Route) -> None:
    """On eight devices an exchange takes what it takes on four: ports are free for those who come first."""
    slow = replace(known(1e-3, scale=1e-3), route=lambda op: route)
    four, eight = (longest_copy(schedule_of("overlap", devices, 1), slow) for devices in (4, 8))
    assert eight == pytest.approx(four, rel=0.01)


def longest_copy(schedule: Schedule, given: Given) -> float:
    """Seconds of the longest copy."""
    spans = simulate(schedule, given).spans
    return max(span.end - span.start for span in spans if isinstance(schedule.ops[span.op], Copy))


def test_a_flag_that_nobody_raises_is_an_error() -> None:
    schedule = schedule_of("peer", 2, 1)
    queue = Queue(0, "boundary", -1)
    stuck: Op = SignalWait(0, queue, Flag(0, "of nobody"), 1)
    with pytest.raises(UsageError, match="waits forever"):
        simulate(replace(schedule, ops=(*schedule.ops, stuck)), known(1e-5))


def test_every_kind_of_operation_has_a_cost() -> None:
    assert set(get_args(Op)) == set(COSTS)


def test_the_predicted_timeline_is_one_of_the_usual_format() -> None:
    schedule = schedule_of("overlap", 2, 1)
    found = simulate(schedule, known(1e-4))
    events = [event for event in chrome(schedule.ops, found.spans)["traceEvents"] if event["ph"] == "X"]
    assert {event["cat"] for event in events} == {"compute", "copy"}
    assert {event["pid"] for event in events} == {0, 1}
    assert min(event["ts"] for event in events) == 0
    assert all(event["dur"] >= 0 for event in events)
