"""The stretches of a host's commands that become graphs, and the clock of a host that waits."""

from __future__ import annotations

import time
from ctypes import CFUNCTYPE, c_int, c_void_p, cast

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import heat_2d

from peergrid import Grid, Options, Problem
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.commands.buffer import COLUMNS, CONTEXT, FUNCTION, KIND, NOTHING, POLL, CommandBuffer
from peergrid.runtime.cuda.commands.replay import DONE, NOT_READY, replay
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import lower
from peergrid.runtime.cuda.lowering.passes import queued_on
from peergrid.runtime.cuda.submission.graphs import stretches
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.ops import describe
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.passes.captured import ties


def carried_out(commands: CommandBuffer, words: np.ndarray) -> tuple[int, int]:
    """What became of a command buffer without calls in three iterations; words: abort, spent and two for the clock."""
    tables, addresses = (commands.table[:0], commands.table[:0]), [int(words.ctypes.data) + 8 * n for n in (0, 1)]
    state, _, _, iteration = replay(commands.table, NOTHING, tables, 4, 3, 0, 1, *addresses)
    return int(state), int(iteration)


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
@pytest.mark.parametrize(("words", "hosts"), [(False, ()), (True, ()), (True, (0, 0, 1, 1)), (True, (0, 1, 2, 3))])
def test_stretches_of_a_gpu_are_the_rows_of_what_was_captured(words: bool, hosts: tuple[int, ...]) -> None:
    """Every row has its place, in order; what ties GPUs is in no stretch, and each begins with a fork of the origin."""
    problem = Problem.of(heat_2d(Grid((32, 12)).field("u"), 0.2))
    options = Options("graph", depth=2)
    plan = layout(problem, Partition(problem.grid, (4, 1)), options)
    execution = ExecutionContext(HostDriver(words=words), plan, 100, (0, 1, 2, 3), 1, None)
    schedule = one_iteration(plan, options)
    schedule = apply_passes(plan, schedule, queued_on(execution, schedule, hosts))
    made = lower(execution, schedule, captured=True)
    assert set(made.buffers) == set(hosts or (0,))
    tied = ties(schedule, (0, 1, 2, 3))
    for commands in made.buffers.values():
        found = list(stretches(schedule, commands, (0, 1, 2, 3)))
        assert [row for _, rows in found for row in rows] == list(range(len(commands.ops)))
        assert {commands.ops[row] for origin, rows in found if origin is None for row in rows} <= tied
        for origin, rows in found:
            if origin is not None:
                assert len({commands.table[row, CONTEXT] for row in rows}) == 1
                assert describe(schedule.ops[commands.ops[rows[0]]]).startswith("Record event")
                assert origin.name == "boundary"
    execution.close()


def test_a_question_in_vain_is_time_spent_waiting() -> None:
    """The driver answers 'not ready' once in every iteration, and takes its time for that."""
    answers = [NOT_READY, 0] * 3

    def answer() -> int:
        if answers[0] == NOT_READY:
            time.sleep(0.05)
        return answers.pop(0)

    function, table, words = CFUNCTYPE(c_int)(answer), np.zeros((1, COLUMNS), np.int64), np.zeros(4, np.int64)
    table[0, KIND], table[0, FUNCTION] = POLL, int(cast(function, c_void_p).value or 0)
    assert carried_out(CommandBuffer(table, (0,), (), ()), words) == (DONE, 3)
    assert not answers
    assert 0 < words[1] < 0.05e9
