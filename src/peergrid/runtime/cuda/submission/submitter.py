"""Submission threads: each replays a command buffer of its own, a bounded distance ahead of the devices.

What a thread needs is made ready once for every schedule, so that between two chunks of a run next to nothing is done
by the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from peergrid.errors import UsageError
from peergrid.runtime.cuda.commands.buffer import CONTEXT, NOTHING, CommandBuffer, Words
from peergrid.runtime.cuda.commands.replay import replay
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.duration import IN_FLIGHT_SECONDS
from peergrid.runtime.cuda.lowering.execution_context import SECOND, ExecutionContext
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.submission.affinity import bound_to, near_cpus
from peergrid.runtime.workers import Workers
from peergrid.schedule.ops import Event, Flag, Queue, hosts_of, queues_of

AHEAD_CALLS = 256  # calls per device that a host may be ahead, twice: fewer than the driver takes before it blocks
MOST_AHEAD = 64
LONGER = 1.3  # times as long as a kernel a host waits: the wait closest to the cause is reported
SLEEP = 20  # microseconds between two looks at whether the devices have come closer: there is work left for them


@dataclass(frozen=True)
class End:
    """The end of a thread's replay (see `replay`); issuing: the nanoseconds that it spent without waiting."""

    state: int
    code: int
    row: int
    iteration: int
    issuing: int


@dataclass(frozen=True, eq=False)
class Submission:
    """The commands of one thread and its processors; every so many iterations it records where its queues are, and
    waits for the record before.
    """

    commands: CommandBuffer
    marks: tuple[CommandBuffer, CommandBuffer] | None = None
    every: int = 2
    near: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class SubmissionPlan:
    """The submissions of a schedule's hosts, and the command buffer that waits until all queues are empty."""

    lowered: Lowered
    submissions: tuple[Submission, ...]
    drain: CommandBuffer


class Submitter:
    """Threads for one executor, one for each host of a schedule; `seconds` is how long the busiest of them issued so
    far, without waiting; `timeout`: whole seconds without progress before they give up a wait.
    """

    def __init__(self, execution: ExecutionContext) -> None:
        self.seconds = 0.0
        self._execution = execution
        self.timeout = max(1, int(execution.timeout * LONGER))
        self._workers = Workers(execution.devices.count, "issuing")
        self._works: dict[tuple[object, ...], SubmissionPlan] = {}
        self._closed = False

    def work(
        self, lowered: Lowered, buffers: Mapping[int, CommandBuffer] | None = None, iterations: int = 1
    ) -> SubmissionPlan:
        """The submission plan of some iterations.

        buffers: of the hosts, if other than the schedule's; iterations: of the schedule that the buffers make at once.
        """
        buffers = lowered.buffers if buffers is None else buffers
        # a plan keeps its command buffers, so an identity stays theirs
        key = tuple(id(commands) for commands in buffers.values())
        if key not in self._works:
            steps = iterations * lowered.schedule.steps
            submissions = tuple(self._submission(lowered, host, one, steps) for host, one in buffers.items())
            self._works[key] = SubmissionPlan(lowered, submissions, self._drain(lowered.queues))
        return self._works[key]

    def run(self, work: SubmissionPlan, times: int, step: int, flag_values: dict[Flag, int]) -> list[End]:
        """Carry out some iterations, every submission in a thread; how each ended. The queues may still be working."""
        steps, increments = work.lowered.schedule.steps, work.lowered.increments
        relocations = [
            submission.commands.relocation_table(step, steps, flag_values, increments)
            for submission in work.submissions
        ]
        self._execution.words[:] = 0
        others = [
            self._workers.submit(self.carry_out, submission, times, relocation)
            for submission, relocation in list(zip(work.submissions, relocations, strict=True))[1:]
        ]
        first = self.carry_out(work.submissions[0], times, relocations[0])
        ends = [first, *(other.result() for other in others)]
        self.seconds += max(end.issuing for end in ends) / SECOND
        return ends

    def carry_out(self, submission: Submission, times: int = 1, relocations: Words = NOTHING) -> End:
        """Carry out a submission in this thread, near the GPUs it issues to; how it ended."""
        table, spent = submission.commands.table, np.zeros(3, np.int64)
        marks = (table[:0], table[:0])
        if submission.marks is not None:
            marks = submission.marks[0].table, submission.marks[1].table
        with bound_to(submission.near):
            state, code, row, iteration = replay(
                table,
                relocations,
                marks,
                submission.every,
                times,
                self._execution.devices.entry("cuCtxSetCurrent"),
                self.timeout,
                self._execution.abort_address,
                int(spent.ctypes.data),
            )
        if self._closed:  # by what interrupted this thread, such as a signal's handler: streams and memory are gone
            raise UsageError("The simulation was closed within its steps.")
        return End(int(state), int(code), int(row), int(iteration), int(spent[0]))

    def close(self) -> None:
        """Stop whoever issues or waits still, as after Ctrl-C."""
        self._closed = True
        self._execution.words[0] = self._execution.fault_log[0] = 1
        self._workers.close()

    def _submission(self, lowered: Lowered, host: int, commands: CommandBuffer, steps: int) -> Submission:
        contexts, iteration = contexts_of(commands), self._execution.step_seconds * max(1, steps)
        most = (
            MOST_AHEAD,
            int(IN_FLIGHT_SECONDS / iteration),
            AHEAD_CALLS * len(contexts) // max(1, len(commands.ops)),
        )
        mine = [queue for queue in _issued(lowered, host) if self._execution.devices.context(queue.device) in contexts]
        marks = self._marks(mine, 0), self._marks(mine, 1)
        return Submission(commands, marks, max(1, min(most)), self._near({queue.device for queue in mine}))

    def _near(self, devices: Set[int]) -> frozenset[int]:
        """The processors that are near to all GPUs that devices stand for; none where there are no such."""
        sides = [near_cpus(self._execution.devices.ordinals[device]) for device in devices]
        return frozenset.intersection(*sides) if sides else frozenset()

    def _marks(self, queues: Sequence[Queue], parity: int) -> CommandBuffer:
        """Rows that record where queues are, and wait for where they were the time before."""
        commands = CommandWriter(self._execution.devices)
        for queue in queues:
            here, before = (Event(queue.device, f"mark {p} of {queue}") for p in (parity, 1 - parity))
            commands.record(-1, queue, here)
            commands.poll(-1, before, SLEEP)
        return commands.finish()

    def _drain(self, queues: Sequence[Queue]) -> CommandBuffer:
        commands = CommandWriter(self._execution.devices)
        for queue in queues:
            commands.poll(-1, queue)
        return commands.finish()


def contexts_of(commands: CommandBuffer) -> list[int]:
    """The contexts of a command buffer's rows, in the order in which they first appear."""
    return [context for context in dict.fromkeys(commands.table[:, CONTEXT].tolist()) if context]


def _issued(lowered: Lowered, host: int) -> list[Queue]:
    """The queues into which a host issues: those of its devices, which need not be those of the schedule."""
    mine = {queue.device for op in lowered.schedule.ops if host in hosts_of(op) for queue in queues_of(op)}
    return sorted(queue for queue in lowered.queues if queue.device in mine)
