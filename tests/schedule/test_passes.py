"""Schedules after the passes of a lowering: right by both checkers, and so are the bits that virtual devices make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from peergrid import Grid, Options, stencil, verify
from peergrid.errors import CheckFailed, UsageError
from peergrid.grid import Boundary
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.reference import ReferenceKernel
from peergrid.runtime.trace.judge import REDUNDANT, Checkers, judge_all
from peergrid.schedule import Layout, Schedule, build, layout, one_iteration
from peergrid.schedule.mutate import mutants
from peergrid.schedule.ops import (
    Compute,
    Copy,
    Flag,
    Record,
    Route,
    Semaphore,
    SignalOp,
    SignalWait,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.passes import LoweringPass, apply_passes, drained
from peergrid.schedule.passes.captured import CaptureGraphs
from peergrid.schedule.passes.fused import fuse_exchange, fuse_steps
from peergrid.schedule.passes.hosts import AssignHosts, hosts_of_gpus, separable
from peergrid.schedule.passes.semaphores import EventsToSemaphores, applicable
from peergrid.schedule.passes.wraps import wrap_in_kernels
from peergrid.schedule.proved import repeated, require_right
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

SEMAPHORES = EventsToSemaphores(lambda source, target: source != target)
PASSES: dict[str, tuple[StrategyName, LoweringPass]] = {
    "peer": ("peer", LoweringPass("exchange", fuse_exchange)),
    "persistent": ("persistent", LoweringPass("steps", fuse_steps)),
    "async": ("async", LoweringPass("semaphores", SEMAPHORES)),
    "overlap": ("overlap", LoweringPass("semaphores", SEMAPHORES)),
    "graph": ("graph", LoweringPass("graphs", lambda plan, s: captured(plan, SEMAPHORES(plan, s)))),
    "graph, events": ("graph", LoweringPass("graphs", lambda plan, s: captured(plan, s))),
    "peer, hosts": ("peer", LoweringPass("hosts", lambda plan, s: shared_out(plan, fuse_exchange(plan, s)))),
    "overlap, hosts": ("overlap", LoweringPass("hosts", lambda plan, s: shared_out(plan, SEMAPHORES(plan, s)))),
    "graph, hosts": ("graph", LoweringPass("hosts", lambda p, s: shared_out(p, captured(p, SEMAPHORES(p, s))))),
}


def captured(plan: Layout, schedule: Schedule) -> Schedule:
    return CaptureGraphs(tuple(range(plan.devices)))(plan, schedule)


def shared_out(plan: Layout, schedule: Schedule) -> Schedule:
    return AssignHosts(tuple(range(plan.devices)))(plan, schedule)


@stencil
def diffuse(u, a):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + a[0, 0] * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u[0, 0])


@stencil
def drift(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.5 * u[0, 0] + 0.5 * u[-2, 0]


@pytest.mark.parametrize("strategy", ["serial", "overlap", "async"])
@pytest.mark.parametrize(("boundary", "devices"), [(("periodic", "periodic"), 1), (("fixed", "periodic"), 3)])
def test_computations_that_read_across_edges_need_no_copies(
    strategy: StrategyName, boundary: tuple[Boundary, Boundary], devices: int
) -> None:
    grid = Grid((24, 9), boundary)
    problem = Problem.of(diffuse(grid.field("u", 0.5), grid.field("a", 0.1)))
    options = Options(strategy)
    plan = layout(problem, Partition(grid, (devices, 1)), options)
    before = one_iteration(plan, options)
    after = wrap_in_kernels(plan, before)
    copies = [[op for op in one.ops if isinstance(op, Copy)] for one in (before, after)]
    assert len(copies[0]) - len(copies[1]) == 2 * len(plan.wrapped) > 0
    broken = replace(before, ops=tuple(op for op in before.ops if op not in copies[0] or op in copies[1]))
    both = Checkers(plan, [*repeated(plan, after), *repeated(plan, broken)])
    assert [*both.proved(repeated(plan, after))] == [*both.replayed(repeated(plan, after))] == []
    assert [*both.proved(repeated(plan, broken))]
    assert [*both.replayed(repeated(plan, broken))]


def problem_of(boundary: Boundary, *, one_way: bool = False) -> Problem:
    grid, noise = Grid((40, 9), (boundary, "fixed")), np.random.default_rng(4)
    u = grid.field("u", noise.random(grid.shape))
    return Problem.of(drift(u) if one_way else diffuse(u, grid.field("a", 0.2 * noise.random(grid.shape))))


def made(name: str, problem: Problem, devices: int, depth: int) -> tuple[Layout, Schedule]:
    strategy, one = PASSES[name]
    options = Options(strategy, depth)
    plan = layout(problem, Partition(problem.grid, (devices, 1)), options)
    return plan, apply_passes(plan, one_iteration(plan, options), (one,))


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize(("devices", "depth"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_what_a_pass_leaves_is_right(name: str, boundary: Boundary, devices: int, depth: int) -> None:
    for one_way in (False, True):
        plan, schedule = made(name, problem_of(boundary, one_way=one_way), devices, depth)
        iterations = repeated(plan, schedule)
        both = Checkers(plan, iterations)
        assert [*both.proved(iterations)] == [*both.replayed(iterations)] == []


@pytest.mark.parametrize("name", PASSES)
def test_every_mutant_of_it_is_rejected_by_both_checkers_or_as_good(name: str) -> None:
    for boundary, devices in (("fixed", 3), ("periodic", 2)):
        plan, schedule = made(name, problem_of(boundary), devices, 2)  # type: ignore[arg-type]
        found: dict[str, set[str]] = {}
        for verdict in judge_all(plan, schedule, mutants(schedule, 4)):
            found.setdefault(verdict.mutant.kind, set()).add(verdict.outcome)
        assert set().union(*found.values()) <= {"killed", *REDUNDANT}
        assert all(found.get(f"drop {kind}", {"killed"}) == {"killed"} for kind in ("SignalWait", "Compute", "Copy"))
        assert "drop SignalWait" in found or name == "graph, events"
        of_hosts = [outcomes for kind, outcomes in found.items() if kind.startswith("host ")]
        assert bool(of_hosts) == name.endswith("hosts")
        assert all(outcomes == {"killed"} for outcomes in of_hosts)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_virtual_devices_that_carry_it_out_make_the_bits(name: str, boundary: Boundary) -> None:
    problem = problem_of(boundary)
    found = set()
    for devices in (1, 3):
        plan, schedule = made(name, problem, devices, 2)
        if devices == 1:
            schedule = one_iteration(plan, schedule.options)
        executor = ThreadedExecutor(plan, 20, ReferenceKernel(problem))
        for of, field in problem.fields.items():
            executor.load(of, field.global_array(), 0)
        executor.execute(schedule, 3, 0)
        executor.execute(schedule, 2, 3 * schedule.steps)
        found.add(executor.gather("u", schedule.final).tobytes())
        executor.close()
    assert len(found) == 1


def test_semaphores_stand_in_for_events_between_devices_alone() -> None:
    """One for each event and waiting device; those of a queue between two computations stand together."""
    _, schedule = made("overlap", problem_of("fixed"), 3, 2)
    assert {type(op.flag) for op in schedule.ops if isinstance(op, SignalOp | SignalWait)} == {Semaphore}
    assert all(op.event.device == op.queue.device for op in schedule.ops if isinstance(op, Wait | Record))
    _, schedule = made("async", problem_of("fixed"), 2, 2)
    kinds = [type(op).__name__ for op in schedule.ops if not isinstance(op, Compute | Copy)]
    assert kinds[:4] == ["SignalOp", "SignalWait"] * 2


@pytest.mark.parametrize(("strategy", "route", "separate"), [
    ("async", None, True), ("overlap", None, True), ("graph", None, True), ("peer", None, True),
    ("serial", None, False), ("threads", None, False), ("async", "host", False), ("peer", "host", False),
])  # fmt: skip
def test_a_host_for_each_gpu_where_words_alone_tie_them(
    strategy: StrategyName, route: Route | None, separate: bool
) -> None:
    problem, options = problem_of("fixed"), Options(strategy, route=route)
    plan = layout(problem, Partition(problem.grid, (4, 1)), options)
    schedule = one_iteration(plan, options)
    assert separable(schedule, (0, 1, 2, 3), SEMAPHORES.crosses) == separate
    assert not separable(schedule, (0, 0, 0, 0), SEMAPHORES.crosses)
    assert separable(schedule, (0, 1, 2, 3), lambda *_: False) is False
    hosts = hosts_of_gpus((0, 0, 1, 2), 2)
    assert hosts == (0, 0, 0, 1)
    if separate:
        issued = AssignHosts(hosts)(plan, SEMAPHORES(plan, schedule))
        assert {(queue.device, host) for op in issued.ops for queue in queues_of(op) for host in hosts_of(op)} == set(
            enumerate(hosts)
        )


def test_schedules_of_several_hosts_keep_their_events() -> None:
    problem = problem_of("fixed")
    plan = layout(problem, Partition(problem.grid, (2, 1)), Options("threads"))
    assert not applicable(one_iteration(plan, Options("threads")), (0, 1))
    assert applicable(one_iteration(plan, Options("async")), (0, 1))
    assert not applicable(one_iteration(plan, Options("async", route="host")), (0, 1))


def test_what_ends_in_the_other_slot_is_followed_by_a_reader() -> None:
    problem, options = problem_of("fixed"), Options("peer", 2)
    plan = layout(problem, Partition(problem.grid, (3, 1)), options)
    shorter = fuse_exchange(plan, build(plan, options, 2))
    assert shorter.first != shorter.final
    iterations = repeated(plan, shorter)
    assert iterations[0] == drained(shorter)
    both = Checkers(plan, iterations)
    assert [*both.proved(iterations)] == [*both.replayed(iterations)] == []


def test_a_wait_for_nothing_yet_is_a_wait_for_the_iterations_before() -> None:
    """Value 0 orders the second iteration behind the first, and orders nothing in the first."""
    plan, schedule = made("peer", problem_of("fixed"), 2, 1)
    without = [op for op in schedule.ops if not (isinstance(op, SignalWait) and op.value == 0)]
    assert 0 < len(without) < len(schedule.ops)
    broken = Schedule(schedule.options, 2, schedule.steps, 0, schedule.final, tuple(without))
    both = Checkers(plan, repeated(plan, broken))
    assert {fault.kind for fault in both.proved(repeated(plan, broken))} >= {"race"}
    assert next(both.replayed(repeated(plan, broken)), None) is not None


def test_a_run_refuses_what_is_wrong_in_a_line_for_each_conflict() -> None:
    plan, schedule = made("peer", problem_of("fixed"), 3, 1)
    require_right(plan, schedule)
    unordered = tuple(
        op for op in schedule.ops if not isinstance(op, SignalWait) or op.flag != Flag(1, "halo from 0 at the low end")
    )
    wrong = Schedule(schedule.options, 3, schedule.steps, 0, schedule.final, unordered)
    with pytest.raises(CheckFailed, match="'peer' is wrong, so nothing ran") as raised:
        require_right(plan, wrong)
    first, *_ = str(raised.value).splitlines()
    assert "To mend it, record an event in " in first


@pytest.mark.parametrize(("strategy", "passes"), [
    ("peer", ("fuse the exchange into kernels", "a host for each GPU")),
    ("persistent", ("fuse the exchange and all passes into one kernel of each device",)),
    ("overlap", ("events between GPUs to semaphores", "a host for each GPU")),
    ("threads", ()),
])  # fmt: skip
def test_a_stencil_of_ones_own_is_proved_as_gpus_carry_it_out(strategy: StrategyName, passes: tuple[str, ...]) -> None:
    grid = Grid((400, 300), dtype="float32")
    u, a = grid.field("u"), grid.field("a")
    proof = verify(Problem.of(diffuse(u, a)), devices="cuda:0,1", strategy=strategy, depth=4)
    assert proof.holds
    assert (proof.passes, proof.faults, proof.ops > 0) == (passes, (), True)
    assert verify(Problem.of(diffuse(u, a)), devices="cpu:3", strategy=strategy).passes == ()


@pytest.mark.parametrize("spec", ["cuda", "cuda:", "gpu:1", "cpu:0", "cpu:1025", "two"])
def test_devices_that_cannot_be_are_refused(spec: str) -> None:
    with pytest.raises(UsageError, match=f"got '{spec}'"):
        verify(problem_of("fixed"), devices=spec)
