"""Parts of a command buffer, replayed side by side by a model: waits take the records that they take in the list."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from ctypes import CFUNCTYPE, c_int, c_void_p, cast
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver
from hypothesis import given
from hypothesis import strategies as st
from runtime_problems import heat_2d

from peergrid import Grid, Options, Problem
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.commands.buffer import NOTHING, CommandBuffer, CommandWriter, Relocation
from peergrid.runtime.cuda.commands.parts import Events, Parts, split
from peergrid.runtime.cuda.commands.replay import ABORTED, DONE, NOT_READY, TIMED_OUT, replay
from peergrid.runtime.cuda.commands.rows import CALL, CONTEXT, FIRST, KIND, PUBLISH, WAIT_FOR
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import lower
from peergrid.runtime.cuda.lowering.passes import queued_on
from peergrid.runtime.cuda.submission.graphs import stretches
from peergrid.runtime.cuda.submission.submitter import Submitter
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.ops import Route, describe
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.passes.captured import ties

EVENTS = Events(record=101, wait=102, semaphore=104)
TURNS = 4
Bound = list[tuple[int, int, int]]
"""For each wait in turn: event, part that recorded it last, how many times it had by then."""


@dataclass
class Model:
    """Threads that carry out a part each, one row at a time."""

    buffers: tuple[CommandBuffer, ...]
    events: Events
    words: dict[int, int] = field(default_factory=dict)
    last: dict[int, tuple[int, int]] = field(default_factory=dict)
    bound: list[Bound] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at = [(0, 0)] * len(self.buffers)
        self.bound = [[] for _ in self.buffers]

    def able(self) -> list[int]:
        """The threads that can go on."""
        return [n for n in range(len(self.buffers)) if self.at[n][0] < TURNS and self._free(n)]

    def go(self, n: int) -> None:
        iteration, row = self.at[n]
        words = self.buffers[n].table[row]
        use = self.events.use(words) if words[KIND] == CALL else None
        if words[KIND] == PUBLISH:
            self.words[int(words[FIRST])] = int(words[FIRST + 1] + iteration * words[FIRST + 2])
        elif use is not None and use[1]:
            self.last[use[0]] = (n, self.last.get(use[0], (n, 0))[1] + 1)
        elif use is not None:
            self.bound[n].append((use[0], *self.last.get(use[0], (-1, 0))))
        self.at[n] = (iteration, row + 1) if row + 1 < len(self.buffers[n].table) else (iteration + 1, 0)

    def run(self, choose: Callable[[list[int]], int]) -> list[Bound]:
        """Until nobody can go on; nobody may be held up for ever."""
        while able := self.able():
            self.go(choose(able))
        assert all(iteration == TURNS for iteration, _ in self.at), "held up for ever"
        return self.bound

    def _free(self, n: int) -> bool:
        iteration, row = self.at[n]
        words = self.buffers[n].table[row]
        goal = int(words[FIRST + 1] + iteration * words[FIRST + 2])
        return words[KIND] != WAIT_FOR or self.words.get(int(words[FIRST]), 0) >= goal


def in_order(commands: CommandBuffer, events: Events, part_of: dict[int, int]) -> list[Bound]:
    """What each wait takes in the list's order, by parts."""
    count, last = len(set(part_of.values())), dict[int, tuple[int, int]]()
    bound: list[Bound] = [[] for _ in range(count)]
    for _ in range(TURNS):
        for row in commands.table:
            part, use = part_of[int(row[1])], events.use(row)
            if use is not None and use[1]:
                last[use[0]] = (part, last.get(use[0], (part, 0))[1] + 1)
            elif use is not None:
                bound[part].append((use[0], *last.get(use[0], (-1, 0))))
    return bound


@st.composite
def buffers(draw: st.DrawFn) -> tuple[CommandBuffer, dict[int, int]]:
    """Calls of up to four contexts, some of which record events or wait for any."""
    made, contexts = CommandWriter(), draw(st.integers(2, 4))
    for number in range(draw(st.integers(2, 16))):
        context = draw(st.integers(1, contexts))
        kind, event = draw(st.sampled_from(["record", "wait", "wait", "other"])), draw(st.integers(0, 2))
        if kind == "record":  # an event is recorded on the device it belongs to
            made.call(number, 1 + event % contexts, EVENTS.record, 1000 + event, 1)
        elif kind == "wait":
            made.call(number, context, EVENTS.wait, 1, 1000 + event)
        else:
            made.call(number, context, 103)
    return made.finish(), {context: context - 1 for context in range(1, contexts + 1)}


@given(buffers(), st.integers(0, 1 << 30))
def test_any_interleaving_gives_the_records_of_the_list(drawn: tuple[CommandBuffer, dict[int, int]], seed: int) -> None:
    commands, part_of = drawn
    present = sorted({part_of[int(row[1])] for row in commands.table})
    part_of = {context: present.index(part) for context, part in part_of.items() if part in present}
    parts, chance = split(commands, part_of, EVENTS), random.Random(seed)
    if len(present) < 2:
        assert parts.buffers == (commands,)
        return
    expected = in_order(commands, EVENTS, part_of)
    favourite = chance.randrange(len(present))
    for choose in (chance.choice, lambda able: favourite if favourite in able else chance.choice(able)):
        assert Model(parts.buffers, EVENTS).run(choose) == expected


def lowered(options: Options, devices: int) -> tuple[CommandBuffer, dict[int, int], Events, ExecutionContext]:
    """A schedule's command buffer for the host's driver, where events tie all queues, with a part for each device."""
    problem = Problem.of(heat_2d(Grid((8 * devices, 12)).field("u"), 0.2))
    plan = layout(problem, Partition(problem.grid, (devices, 1)), options)
    execution = ExecutionContext(HostDriver(words=False), plan, 100, tuple(range(devices)), 1, None)
    (commands,) = lower(execution, one_iteration(plan, options)).buffers.values()
    part_of = {execution.devices.context(device): device for device in range(devices)}
    return commands, part_of, execution.events, execution


def without(parts: Parts) -> Iterator[tuple[int, int, tuple[CommandBuffer, ...]]]:
    """The parts with one `WAIT_FOR` left out: whose, whom it followed, and what is left."""
    owner = {
        int(row[FIRST]): n for n, commands in enumerate(parts.buffers) for row in commands.table if row[KIND] == PUBLISH
    }
    for n, commands in enumerate(parts.buffers):
        for row in np.flatnonzero(commands.table[:, KIND] == WAIT_FOR):
            left = replace(commands, table=np.delete(commands.table, row, 0))
            yield n, owner[int(commands.table[row, FIRST])], (*parts.buffers[:n], left, *parts.buffers[n + 1 :])


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
@pytest.mark.parametrize(
    "options",
    [Options("overlap"), Options("async"), Options("overlap", depth=2, block=1), Options("async", order="left-right")],
    ids=str,
)
def test_what_is_followed_has_to_be(options: Options) -> None:
    """Each look at another's progress that is left out changes what some wait takes, if its part runs ahead."""
    commands, part_of, events, execution = lowered(options, 4)
    parts, expected = split(commands, part_of, events), in_order(commands, events, part_of)
    assert Model(parts.buffers, events).run(random.Random(1).choice) == expected
    count = 0
    for ahead, behind, left in without(parts):
        rank = {ahead: 0, behind: 2}
        found = Model(left, events).run(lambda able, rank=rank: min(able, key=lambda n: rank.get(n, 1)))
        assert found != expected, (ahead, behind)
        count += 1
    assert count >= 2 * 6  # of both neighbours, in each direction
    execution.close()


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
def test_every_row_and_patch_goes_to_one_part() -> None:
    commands, part_of, events, execution = lowered(Options("overlap"), 4)
    parts = split(commands, part_of, events)
    rows = sorted(tuple(row) for part in parts.buffers for row in part.table if row[KIND] == CALL)
    assert rows == sorted(map(tuple, commands.table))
    assert sorted(p.address for part in parts.buffers for p in part.relocations) == sorted(
        p.address for p in commands.relocations
    )
    assert all(len(part.relocations) == len(commands.relocations) // 4 for part in parts.buffers)
    stray = replace(commands, relocations=(*commands.relocations, Relocation(0, 0, None)))
    assert split(stray, part_of, events).buffers == (stray,)
    execution.close()


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
def test_a_host_that_waits_issues_alone() -> None:
    commands, part_of, events, execution = lowered(Options("serial"), 3)
    assert split(commands, part_of, events).buffers == (commands,)
    execution.close()


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
@pytest.mark.parametrize(("route", "threads"), [("copy", 4), ("store", 4), ("host", 1)])
def test_halos_through_the_host_are_issued_in_the_schedules_order(route: Route, threads: int) -> None:
    """A thread ahead of the others would put copies that wait into the way of those that are waited for."""
    problem = Problem.of(heat_2d(Grid((32, 12)).field("u"), 0.2))
    options = Options("peer", route=route)
    plan = layout(problem, Partition(problem.grid, (4, 1)), options)
    execution = ExecutionContext(HostDriver(words=False), plan, 100, (0, 1, 2, 3), 1, None)
    with closing(Submitter(execution, 4)) as submitter:
        assert len(submitter.work(lower(execution, one_iteration(plan, options)), 1000).submissions) == threads
    execution.close()


def carried_out(commands: CommandBuffer, words: np.ndarray) -> tuple[int, int]:
    """What became of a command buffer without calls in three turns; words: abort, spent and two for the clock."""
    tables, addresses = (commands.table[:0], commands.table[:0]), [int(words.ctypes.data) + 8 * n for n in (0, 1)]
    state, _, _, iteration = replay(commands.table, NOTHING, tables, 4, 3, 0, 1, *addresses)
    return int(state), int(iteration)


@pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
@pytest.mark.parametrize("words", [False, True])
def test_stretches_of_a_gpu_are_the_rows_of_what_was_captured(words: bool) -> None:
    """Every row has its place, in order; what ties GPUs is in no stretch, and each begins with a fork of the origin."""
    problem = Problem.of(heat_2d(Grid((32, 12)).field("u"), 0.2))
    options = Options("graph", depth=2)
    plan = layout(problem, Partition(problem.grid, (4, 1)), options)
    execution = ExecutionContext(HostDriver(words=words), plan, 100, (0, 1, 2, 3), 1, None)
    schedule = one_iteration(plan, options)
    schedule = apply_passes(plan, schedule, queued_on(execution, schedule))
    made = lower(execution, schedule, captured=True)
    (commands,) = made.buffers.values()
    found, tied = stretches(made, (0, 1, 2, 3)), ties(schedule, (0, 1, 2, 3))
    rows = [row for part in found for row in ([part] if isinstance(part, int) else part.rows)]
    assert rows == list(range(len(commands.ops)))
    assert {commands.ops[part] for part in found if isinstance(part, int)} <= tied
    for part in found:
        if not isinstance(part, int):
            assert len({commands.table[row, CONTEXT] for row in part.rows}) == 1
            assert describe(schedule.ops[commands.ops[part.rows[0]]]).startswith("Record event")
            assert part.origin.name == "boundary"
    assert stretches(lower(execution, one_iteration(plan, options)), (0, 0, 0, 0)) == []
    execution.close()


def test_one_follows_what_another_tells() -> None:
    """In turn n the word has to be at 5 + 3 n; who waits in vain gives up, stops all others, and has spent no time."""
    word, made = np.zeros(1, np.int64), CommandWriter()
    made.publish(0, int(word.ctypes.data), 5, 3)
    made.wait_for(0, int(word.ctypes.data), 5, 3)
    words = np.zeros(4, np.int64)
    assert carried_out(made.finish(), words) == (DONE, 3)
    assert word[0] == 5 + 3 * 2
    assert words[0] == 0
    ahead = CommandWriter()
    ahead.wait_for(0, int(word.ctypes.data), 9, 2)
    words, began = np.zeros(4, np.int64), time.perf_counter()
    assert carried_out(ahead.finish(), words) == (TIMED_OUT, 2)
    assert words[0] == 1
    assert 0 < words[1] < (time.perf_counter() - began) * 5e8
    ahead.wait_for(0, int(word.ctypes.data), 12, 0)
    assert carried_out(ahead.finish(), words) == (ABORTED, 0)


def test_a_question_in_vain_is_time_spent_waiting() -> None:
    """The driver answers 'not ready' once in every iteration, and takes its time for that."""
    answers = [NOT_READY, 0] * 3

    def answer() -> int:
        if answers[0] == NOT_READY:
            time.sleep(0.05)
        return answers.pop(0)

    function, made, words = CFUNCTYPE(c_int)(answer), CommandWriter(), np.zeros(4, np.int64)
    made.poll(0, 0, int(cast(function, c_void_p).value or 0), 0)
    assert carried_out(made.finish(), words) == (DONE, 3)
    assert not answers
    assert 0 < words[1] < 0.05e9
