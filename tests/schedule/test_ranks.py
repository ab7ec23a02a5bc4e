"""Schedules for several ranks: messages in place of copies, proved like any other, and every mutant found."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from drawn_problems import Case, alone, cases, loaded, results
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from inorder import InOrderExecutor
from verify_examples import smooth

from peergrid.errors import UsageError
from peergrid.grid import Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.kernel import Pass
from peergrid.runtime.trace.interleave import interleave
from peergrid.runtime.trace.judge import Outcome, check, judge_all
from peergrid.runtime.trace.replay import check_trace
from peergrid.schedule import Layout, Options, Schedule, build, layout, one_iteration
from peergrid.schedule.mutate import mutants
from peergrid.schedule.ops import (
    Compute,
    Copy,
    Queue,
    Receive,
    Reduce,
    Send,
    SignalOp,
    Sync,
    Touching,
    hosts_of,
    queues_of,
)
from peergrid.schedule.passes.ranks import of_rank, over_ranks
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program, prove
from peergrid.stencil import Problem

DIFFERENT = {strategy.build: name for name, strategy in STRATEGIES.items()}.values()


def ring(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """Thirteen cells in a ring over four devices of two ranks."""
    options = Options(strategy=strategy, depth=depth, block=block)
    plan = layout(Problem.of(smooth(Grid(13, "periodic").field("u"))), Partition(Grid(13, "periodic"), (4,)), options)
    return plan, over_ranks(one_iteration(plan, options), (0, 0, 1, 1))


class Mail:
    """What is on its way, and who carries operations out on all ranks' memory."""

    def __init__(self, executor: InOrderExecutor) -> None:
        self.executor = executor
        self.sent: dict[int, list[object]] = defaultdict(list)

    def act(self, op: Touching, base: int) -> None:
        memories = self.executor.memories
        match op:
            case Send():
                self.sent[op.tag].append(memories[op.source_device].block(op.field, op.slot).view(op.source_box).copy())
            case Receive():
                memories[op.target_device].block(op.field, op.slot).view(op.target_box)[...] = self.sent[op.tag].pop(0)
            case Copy():
                values = memories[op.source_device].block(op.field, op.slot).view(op.source_box)
                memories[op.target_device].block(op.field, op.slot).view(op.target_box)[...] = values
            case Compute():
                memory, recorded = memories[op.device], self.executor.recorded[op.device]
                traces, level = self.executor.traces(), base + op.level
                part = Pass(op.box, op.source, op.target, level, op.steps, traces, recorded)
                self.executor.kernel(memory, part)
            case Reduce():
                raise AssertionError("none is drawn")


@settings(max_examples=60)
@given(case=cases(), rest=st.integers(1, 5), seed=st.integers(0, 99), data=st.data())
def test_a_drawn_schedule_is_right_over_any_ranks(case: Case, rest: int, seed: int, data: st.DataObject) -> None:
    plan, options = case.plan, case.options
    assume(plan.devices > 1)
    ranks = data.draw(st.tuples(*[st.integers(0, 2)] * plan.devices))
    repeated, shorter = (over_ranks(made, ranks) for made in (one_iteration(plan, options), build(plan, options, rest)))
    for iterations in ((repeated, repeated), (repeated, shorter)):
        assert prove(plan, iterations).faults == ()
        assert check(plan, iterations, seed) == ()
    executor = loaded(plan, 2 * repeated.steps + rest)
    log = interleave((repeated, repeated, shorter), seed, Mail(executor).act)
    assert check_trace(plan, log) == ()
    expected = alone(plan.problem, 2 * repeated.steps + rest)
    for name, values in results(executor, shorter.final).items():
        assert values.tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("depth", "block"), [(1, None), (2, 1), (3, None)])
def test_ranks_share_no_queue_no_host_and_no_event(strategy: StrategyName, depth: int, block: int | None) -> None:
    ranks = (0, 0, 1, 1)
    _, made = ring(strategy, depth, block)
    parts = [of_rank(made, ranks, rank) for rank in (0, 1)]
    assert sum(len(part.ops) for part in parts) == len(made.ops)
    hosts = [{host for op in part.ops for host in hosts_of(op)} for part in parts]
    assert not hosts[0] & hosts[1]
    for rank, part in enumerate(parts):
        assert {ranks[queue.device] for op in part.ops for queue in queues_of(op)} == {rank}
        assert all(ranks[op.flag.device] == rank for op in part.ops if isinstance(op, SignalOp))
        assert all(ranks[op.source_device] == ranks[op.target_device] for op in part.ops if isinstance(op, Copy))
    assert any(isinstance(op, Send) for op in made.ops)


@pytest.mark.parametrize("strategy", DIFFERENT)
@pytest.mark.parametrize(("depth", "block"), [(1, None), (2, 1), (3, None)])
def test_every_mutant_of_messages_is_found_by_both_checkers(
    strategy: StrategyName, depth: int, block: int | None
) -> None:
    plan, original = ring(strategy, depth, block)
    assert not prove(plan, (original, original)).faults
    outcomes: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for verdict in judge_all(plan, original, mutants(original, 6)):
        assert verdict.outcome != "disagreement", (verdict.mutant.what, verdict.static, verdict.traced)
        outcomes[verdict.mutant.kind][verdict.outcome] += 1
    for kind in (
        "drop Send",
        "drop Receive",
        "level Send",
        "level Receive",
        "tag Send",
        "tag Receive",
        "slots Receive",
    ):
        assert outcomes[kind].keys() <= {"killed"}, (kind, outcomes[kind])
    assert outcomes["drop Send"]
    assert outcomes["drop Receive"]


def test_what_is_sent_leaves_before_anybody_waits() -> None:
    """A chain of ranks exchanges at once, not one after another."""
    options = Options(strategy="overlap")
    plan = layout(Problem.of(smooth(Grid(40).field("u"))), Partition(Grid(40), (4,)), options)
    made = over_ranks(build(plan, options, 1), (0, 1, 2, 3))
    for device in range(4):
        kinds = [type(op) for op in made.ops if isinstance(op, Send | Receive) and op.queue.device == device]
        assert kinds == [Send] * kinds.count(Send) + [Receive] * kinds.count(Receive)


def test_a_schedule_needs_the_rank_of_each_device() -> None:
    _, made = ring("overlap", 1, None)
    with pytest.raises(UsageError, match="A schedule of 4 devices needs the rank of each, got 2"):
        over_ranks(made, (0, 1))
    assert over_ranks(made, (0, 0, 0, 0)) is made


def test_messages_belong_in_queues_of_their_own_devices() -> None:
    _, made = ring("async", 1, None)
    sent = next(op for op in made.ops if isinstance(op, Send))
    received = next(op for op in made.ops if isinstance(op, Receive) and op.tag == sent.tag)
    with pytest.raises(UsageError, match="belongs in one of its queues"):
        replace(sent, queue=received.queue)
    with pytest.raises(UsageError, match="belongs in one of its queues"):
        replace(received, queue=sent.queue)


def test_three_messages_without_a_receiver_are_a_deadlock() -> None:
    plan, made = ring("async", 1, None)
    sent = next(op for op in made.ops if isinstance(op, Send))
    again = replace(made, ops=(sent, sent, sent))
    assert prove(plan, (again,)).faults[0].kind == "deadlock"
    assert check(plan, (again,))


def test_a_follower_of_another_layout_is_proved_with_messages_too() -> None:
    plan, made = ring("overlap", 2, None)
    rest = build(plan, made.options, 1)
    iterations = tuple(over_ranks(one, (0, 1, 0, 1)) for one in program(plan, rest))
    assert prove(plan, iterations).faults == ()


def test_hosts_have_a_part_in_every_rank_whose_queues_they_wait_for_or_copy_from() -> None:
    options = Options(strategy="threads")
    plan = layout(Problem.of(smooth(Grid(13, "periodic").field("u"))), Partition(Grid(13, "periodic"), (4,)), options)
    plain = one_iteration(plan, options)
    pulled = tuple(
        replace(op, queue=Queue(op.target_device, "pull")) if isinstance(op, Copy) else op for op in plain.ops
    )
    for ops in (plain.ops, pulled):
        waits = tuple(Sync(0, queue) for queue in sorted({queue for op in ops for queue in queues_of(op)}))
        made = over_ranks(replace(plain, ops=(*ops, *waits)), (0, 0, 1, 1))
        hosts = [{host for op in of_rank(made, (0, 0, 1, 1), rank).ops for host in hosts_of(op)} for rank in (0, 1)]
        assert hosts[0].isdisjoint(hosts[1])
        assert sum(isinstance(op, Sync) for op in made.ops) == sum(isinstance(op, Sync) for op in (*ops, *waits))
