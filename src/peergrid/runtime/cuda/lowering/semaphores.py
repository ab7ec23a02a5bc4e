"""Semaphores between queues of different GPUs: words of memory that one queue writes and another waits for.

A wait for an event of another context costs the host a call, under locks of the driver that threads for other GPUs
need, too. A semaphore counts for one waiting GPU how often an event was recorded. All writes and waits of a queue
between two of its computations are one call (`cuStreamBatchMemOp`), which concerns one context alone. A count only
grows, so the order in which hosts issue does not matter. The words lie in host memory, so that a wait can be ended
without any call into a driver that may itself wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peergrid.runtime.cuda.commands.buffer import CommandWriter, Relocation
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Event, Flag, Op, Queue, Record, Sync, Wait, hosts_of, queues_of

WAIT, WRITE = 4, 5  # CU_STREAM_MEM_OP_WAIT_VALUE_64, of which "at least" is the usual kind, and WRITE_VALUE_64
Edge = tuple[Record, Wait]
WORDS, ADDRESS, VALUE = 6, 1, 2  # of a CUstreamBatchMemOpParams: how many, and which


@dataclass(frozen=True)
class SemaphoreOp:
    """A word written or awaited: the count that it gets, or has to reach, in the first iteration."""

    kind: int
    flag: Flag
    count: int


@dataclass(frozen=True, eq=False)
class Semaphores:
    """The semaphores of one schedule."""

    execution: ExecutionContext
    schedule: Schedule

    def crosses(self, op: Wait) -> bool:
        """Whether a wait is for another GPU's event, and made by a word."""
        return self._applicable and self.execution.semaphores_reach(op.event.device, op.queue.device)

    def local(self, event: Event) -> bool:
        """Whether somebody needs the event as such."""
        return event in self._kept

    def write(self, commands: CommandWriter, number: int) -> None:
        """The call that begins with an operation's words, if it begins with them."""
        batch, ops = self._batches.get(number), self.schedule.ops
        if batch is None:
            return
        (queue,) = queues_of(ops[number])
        devices, words = self.execution.devices, np.zeros((len(batch), WORDS), np.int64)
        for row, semaphore in zip(words, batch, strict=True):
            row[0], row[ADDRESS] = semaphore.kind, self.execution.semaphores.address(semaphore.flag)
        address = commands.words(
            number,
            devices.context(queue.device),
            self.execution.entry("cuStreamBatchMemOp"),
            devices.stream(queue),
            words,
        )
        for n, semaphore in enumerate(batch):
            commands.relocations.append(Relocation(address + 8 * (WORDS * n + VALUE), semaphore.count, semaphore.flag))

    @cached_property
    def increments(self) -> dict[Flag, int]:
        """How far each word rises in one iteration."""
        records = Counter(op.event for op in self.schedule.ops if isinstance(op, Record))
        return {flag: records[record.event] for flag, (record, _) in self.edges.items()}

    @cached_property
    def edges(self) -> dict[Flag, Edge]:
        """The operations that each word ties."""
        records = {op.event: op for op in self.schedule.ops if isinstance(op, Record)}
        return {
            semaphore_for(op.event, op.queue.device): (records[op.event], op)
            for op in self.schedule.ops
            if isinstance(op, Wait) and self.crosses(op) and op.event in records
        }

    @cached_property
    def _applicable(self) -> bool:
        """Whether one host issues, so that each wait is for one record, and one queue of every GPU is tied to others,
        so that what lies between its ties can become a graph; and nobody asked that all goes through the host.
        """
        ops, ordinals = self.schedule.ops, self.execution.devices.ordinals
        waits = [op for op in ops if isinstance(op, Wait) and ordinals[op.event.device] != ordinals[op.queue.device]]
        events = {op.event for op in waits}
        tied = {op.queue for op in ops if isinstance(op, Record) and op.event in events} | {op.queue for op in waits}
        one_host = len({host for op in ops for host in hosts_of(op)}) == 1
        free = self.schedule.options.route != "host"
        return free and one_host and sorted(ordinals[queue.device] for queue in tied) == sorted(set(ordinals))

    @cached_property
    def _words(self) -> Mapping[Event, Sequence[Flag]]:
        """The words that count an event's records."""
        found: dict[Event, list[Flag]] = {}
        for flag, (record, _) in self.edges.items():
            found.setdefault(record.event, []).append(flag)
        return found

    @cached_property
    def _kept(self) -> set[Event]:
        """The events that queues of the own GPU wait for, or hosts."""
        waits = {op.event for op in self.schedule.ops if isinstance(op, Wait) and not self.crosses(op)}
        return waits | {op.target for op in self.schedule.ops if isinstance(op, Sync) and isinstance(op.target, Event)}

    @cached_property
    def _batches(self) -> dict[int, list[SemaphoreOp]]:
        """The words of operations that follow one another in a queue, by the number of the first."""
        batches: dict[int, list[SemaphoreOp]] = {}
        last: dict[Queue, int] = {}  # the first operation of the queue's newest batch, while nothing follows it
        counts = Counter[Event]()
        for number, op in enumerate(self.schedule.ops):
            counts.update([op.event] if isinstance(op, Record) else [])
            semaphores = list(self._operations(op, counts))
            for queue in queues_of(op):
                if semaphores:
                    batches.setdefault(last.setdefault(queue, number), []).extend(semaphores)
                else:
                    last.pop(queue, None)
        return batches

    def _operations(self, op: Op, counts: Counter[Event]) -> Iterator[SemaphoreOp]:
        """The words of one operation, after so many records."""
        if isinstance(op, Record):
            yield from (SemaphoreOp(WRITE, flag, counts[op.event]) for flag in self._words.get(op.event, ()))
        elif isinstance(op, Wait) and self.crosses(op):
            yield SemaphoreOp(WAIT, semaphore_for(op.event, op.queue.device), counts[op.event])


def semaphore_for(event: Event, device: int) -> Flag:
    """The word of a device that counts how often another's event was recorded."""
    return Flag(device, f"posted by {event}")
