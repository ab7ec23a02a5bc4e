"""Messages as calls of NCCL in the queues themselves: one group for each exchange, in which all move at once.

NCCL has no tags: what two ranks send each other in a group is matched in order, which is that of tags on both sides,
also where the ranks are each other's neighbours at both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.processes import Calls
from peergrid.runtime.cuda.lowering.copies import memcpy
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.messages import Message, counted, half_of, other_end
from peergrid.runtime.cuda.lowering.transfer import Side, Transfer
from peergrid.schedule.ops import Send

BYTES = 0  # ncclInt8: what moves is not looked at


@dataclass(frozen=True, eq=False)
class GroupedMessages:
    """The messages of one schedule; peers: the rank of each device."""

    execution: ExecutionContext
    calls: Calls
    peers: tuple[int, ...]

    def write(self, commands: CommandWriter, ops: Sequence[tuple[int, Message]]) -> None:
        """The calls of neighbouring messages of a queue."""
        number, queue = ops[0][0], ops[0][1].queue
        devices, entry = self.execution.devices, self.calls.entry
        moves = [(op, *self._ends(op, place)) for place, (_, op) in enumerate(ops)]
        move = partial(memcpy, commands, number, queue)
        call = partial(commands.call_at, number, queue)
        for op, moved, packed in moves:
            if isinstance(op, Send) and packed != moved.source:
                move(moved.source, packed, moved)
        call(entry("ncclGroupStart"))
        for op, moved, packed in sorted(moves, key=lambda move: move[0].tag):
            function, peer = "ncclSend" if isinstance(op, Send) else "ncclRecv", self.peers[other_end(op)]
            stream = devices.stream(queue)
            call(entry(function), packed.address, moved.bytes, BYTES, peer, self.calls.address, stream)
        call(entry("ncclGroupEnd"))
        for op, moved, packed in moves:
            if not isinstance(op, Send) and packed != moved.target:
                move(packed, moved.target, moved)

    def _ends(self, op: Message, place: int) -> tuple[Transfer, Side]:
        """The runs of a message, and where they lie without gaps: in the field itself if they are one run."""
        moved, device = half_of(self.execution, op), op.queue.device
        if not moved.counts:
            return moved, moved.source if isinstance(op, Send) else moved.target
        key, devices = ("group", counted(op), place, moved.bytes), self.execution.devices
        return moved, moved.packed(self.execution.once(key, lambda: devices.allocate(device, moved.bytes)))
