"""Messages as commands: halos packed into memory for them and out of it; words signal between queues and the carrier.

Nobody waits for a queue: it writes into a word how many messages it has packed, or taken, and awaits in another how
many have left, or arrived. So a queue goes on as soon as its message is here, and the carrier is all that polls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import host_words
from peergrid.runtime.cuda.device.processes import Line
from peergrid.runtime.cuda.lowering.copies import memcpy
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.signals import WAIT, WRITE, Word, in_stream
from peergrid.runtime.cuda.lowering.transfer import Transfer, transfer_of
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Flag, Receive, Send, describe

QUEUE, CARRIER = "queue", "carrier"
Message = Send | Receive


def counted(op: Message) -> Flag:
    """The count of messages of a tag that a device has sent, or received."""
    return Flag(op.queue.device, f"{type(op).__name__} {op.tag}")


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of one schedule, as they are written; buffers: of each tag, ops: one of its operations."""

    execution: ExecutionContext
    schedule: Schedule
    buffers: dict[Flag, list[tuple[int, int]]] = field(default_factory=dict)
    ops: dict[Flag, Message] = field(default_factory=dict)

    @cached_property
    def each(self) -> Counter[Flag]:
        """The messages of each tag in an iteration."""
        return Counter(counted(op) for op in self.schedule.ops if isinstance(op, Send | Receive))

    def write(self, commands: CommandWriter, ops: Sequence[tuple[int, Message]]) -> None:
        """The calls of neighbouring messages of a queue."""
        for number, op in ops:
            self._write(commands, number, op)

    def _write(self, commands: CommandWriter, number: int, op: Message) -> None:
        execution, flag, moved = self.execution, counted(op), half_of(self.execution, op)
        buffers = self.buffers.setdefault(flag, [])
        place, sends = len(buffers) + 1, isinstance(op, Send)
        address = execution.message_buffer(flag, len(buffers), moved.bytes)
        buffers.append((address, moved.bytes))
        self.ops[flag] = op
        awaited = place - self.each[flag] if sends else place
        packed = moved.packed(address)
        ends = (moved.source, packed) if sends else (packed, moved.target)
        in_stream(commands, number, op.queue, [Word(WAIT, self._word(flag, CARRIER), awaited, flag)])
        memcpy(commands, number, op.queue, *ends, moved)
        in_stream(commands, number, op.queue, [Word(WRITE, self._word(flag, QUEUE), place, flag)])

    def overdue(self, lines: Sequence[Line]) -> str:
        """The sentence about the message that is farthest behind; empty where none is."""
        behind = []
        for line, op in zip(lines, self.ops.values(), strict=True):
            done = int(host_words(line.carrier, 1)[0]) - line.first
            if done < line.count:
                behind.append(
                    (
                        done / line.count,
                        line.tag,
                        f"'{describe(op)}' waited too long: message {done + 1} of "
                        f"{line.count} {'to' if line.sends else 'from'} rank {line.peer} is still on its way; "
                        "that rank does not advance, or has ended.",
                    )
                )
        return min(behind)[2] if behind else ""

    def lines(self, peers: tuple[int, ...], before: Mapping[Flag, int], times: int) -> Iterator[Line]:
        """The lines of some iterations; peers: the process of each device; before: messages of each so far."""
        for flag, op in self.ops.items():
            sends, buffers = isinstance(op, Send), tuple(self.buffers[flag])
            words = self._word(flag, QUEUE), self._word(flag, CARRIER)
            yield Line(op.tag, peers[other_end(op)], sends, buffers, *words, before.get(flag, 0), times * len(buffers))

    def _word(self, flag: Flag, side: str) -> int:
        return self.execution.message_words.address(Flag(flag.device, f"{flag.name} {side}"))


def other_end(op: Message) -> int:
    """The device that a message goes to or comes from."""
    return op.target_device if isinstance(op, Send) else op.source_device


def half_of(execution: ExecutionContext, op: Message, *, symmetric: bool = False) -> Transfer:
    """The runs of a message in the field here; the other end is nowhere, or, in symmetric memory, at the same place."""
    memory, sends = execution.memory, isinstance(op, Send)
    here = memory.pointer(op.queue.device, op.field, op.slot)
    there = here if symmetric else 0
    return transfer_of(op, memory.plan.blocks, (here, there) if sends else (there, here))
