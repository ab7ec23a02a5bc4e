"""Whatever the problem, split and options: both checkers find nothing, and the bits are those of one device."""

from __future__ import annotations

import numpy as np
from drawn_problems import Case, alone, cases, loaded, results
from hypothesis import event, given, settings
from hypothesis import strategies as st

from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import copy
from peergrid.runtime.trace.cells import exact_reads
from peergrid.runtime.trace.interleave import interleave
from peergrid.runtime.trace.judge import check, judge
from peergrid.runtime.trace.replay import check_trace
from peergrid.schedule import build, one_iteration
from peergrid.schedule.mutate import mutants
from peergrid.schedule.ops import Compute, Copy
from peergrid.schedule.verify import program, prove


@settings(max_examples=100)
@given(case=cases(), rest=st.integers(1, 5), seed=st.integers(0, 99))
def test_a_drawn_schedule_is_right(case: Case, rest: int, seed: int) -> None:
    plan, options = case.plan, case.options
    repeated, shorter = one_iteration(plan, options), build(plan, options, rest)
    for iterations in (program(plan, repeated), program(plan, shorter), (repeated, shorter)):
        assert prove(plan, iterations).faults == ()
        assert prove(plan, iterations, exact_reads).faults == ()
        assert check(plan, iterations, seed) == ()


@settings(max_examples=100)
@given(case=cases(), rest=st.integers(1, 5), seed=st.integers(0, 99))
def test_a_drawn_schedule_finds_the_bits_of_one_device(case: Case, rest: int, seed: int) -> None:
    plan, options = case.plan, case.options
    repeated, shorter = one_iteration(plan, options), build(plan, options, rest)
    steps = 2 * repeated.steps + rest
    expected = alone(plan.problem, steps)
    in_order = loaded(plan, steps)
    in_order.execute(repeated, 2, 0)
    in_order.execute(shorter, 1, 2 * repeated.steps)
    at_random = loaded(plan, steps)

    def act(op: Compute | Copy, base: int) -> None:
        if isinstance(op, Copy):
            copy(at_random.memories, op)
            return
        memory, recorded = at_random.memories[op.device], at_random.recorded[op.device]
        part = Pass(op.box, op.source, op.target, base + op.level, op.steps, at_random.traces(), recorded)
        at_random.kernel(memory, part)

    log = interleave((repeated, repeated, shorter), seed, act)
    assert check_trace(plan, log) == ()
    for executor in (in_order, at_random):
        for name, values in results(executor, shorter.final).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


@settings(max_examples=60)
@given(case=cases(), pick=st.integers(0, 10**6))
def test_both_checkers_agree_on_a_mutant_of_a_drawn_schedule(case: Case, pick: int) -> None:
    original = one_iteration(case.plan, case.options)
    found = list(mutants(original, per_kind=2))
    verdict = judge(case.plan, original, found[pick % len(found)])
    event(verdict.outcome)
    assert verdict.outcome != "disagreement", (verdict.mutant.what, verdict.static, verdict.traced)
