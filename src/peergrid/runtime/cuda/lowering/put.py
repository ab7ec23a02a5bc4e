"""Messages put by kernels into the memory of other processes: one launch for those of an exchange.

Fields lie in a heap of which every process has as much, so that a place in it is known by the own address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from peergrid.codegen.cuda import put
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.processes import Heap, Processes
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.messages import Message, half_of, other_end
from peergrid.runtime.cuda.lowering.transfer import Side, Transfer
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Receive, Send

MOST_PARTS = 16  # of a message; so few that the blocks of all of an exchange's run at once
PART_BYTES = 16 << 10  # of a part, at least: a block puts about 8 bytes in a nanosecond
ALIGNED = 16


@dataclass(frozen=True, eq=False)
class PutMessages:
    """The messages of one schedule; words: the address of those of all parts; peers: the process of each device."""

    execution: ExecutionContext
    heap: Heap
    words: int
    peers: tuple[int, ...]

    @classmethod
    def of(cls, execution: ExecutionContext, processes: Processes, heap: Heap, schedule: Schedule) -> PutMessages:
        """Those of a schedule, of which all processes lower their parts at the same time."""
        devices = execution.devices
        own = max((op.tag for op in schedule.ops if isinstance(op, Send | Receive)), default=-1)
        tags = 1 + max(processes.allgather(own))
        words = devices.symmetric(devices.mine[0], max(1, tags) * MOST_PARTS * put.WORDS * 8)
        return cls(execution, heap, words, processes.of_device)

    def write(self, commands: CommandWriter, ops: Sequence[tuple[int, Message]]) -> None:
        """The launch for neighbouring messages of a queue."""
        number, queue = ops[0][0], ops[0][1].queue
        devices = self.execution.devices
        table = np.array([row for _, op in ops for row in self._rows(op)], put.PART)
        values = np.zeros(1, put.PARTS)
        values["parts"] = devices.constant(queue.device, table)
        values["stop"] = self.execution.fault_log_address
        kernel = self.heap.kernel(devices.on(queue.device), devices.architecture(queue.device))
        commands.launch(number, queue, kernel, len(table), put.THREADS, values)

    def _rows(self, op: Message) -> Iterator[tuple[object, ...]]:
        """The parts of a message, as `codegen.cuda.put.PART` describes them."""
        sends, peer = isinstance(op, Send), self.peers[other_end(op)]
        for place, part in enumerate(parts(half_of(self.execution, op, symmetric=True))):
            pitches = [(0,) * (2 - len(side.pitches)) + side.pitches for side in (part.source, part.target)]
            counts = (1,) * (2 - len(part.counts)) + part.counts
            words = self.words + 8 * put.WORDS * (op.tag * MOST_PARTS + place)
            yield part.source.address, part.target.address, *pitches, counts, part.run, words, peer, sends


def parts(moved: Transfer) -> Iterator[Transfer]:
    """The parts of a message: some of its runs, or of the bytes of its only one."""
    count = min(MOST_PARTS, -(-moved.bytes // PART_BYTES))
    if not moved.counts:
        each = -(-moved.run // count // ALIGNED) * ALIGNED
        for at in range(0, moved.run, each):
            yield _from(moved, at, at, counts=(), run=min(each, moved.run - at))
        return
    axis = int(np.argmax(moved.counts))
    each = -(-moved.counts[axis] // count)
    for at in range(0, moved.counts[axis], each):
        counts = list(moved.counts)
        counts[axis] = min(each, counts[axis] - at)
        ends = (at * side.pitches[axis] for side in (moved.source, moved.target))
        yield _from(moved, *ends, counts=tuple(counts), run=moved.run)


def _from(moved: Transfer, source: int, target: int, *, counts: tuple[int, ...], run: int) -> Transfer:
    """A part that begins so many bytes later on each side."""
    sides = (Side(side.address + at, side.pitches) for side, at in ((moved.source, source), (moved.target, target)))
    return replace(moved, **dict(zip(("source", "target"), sides, strict=True)), counts=counts, run=run)
