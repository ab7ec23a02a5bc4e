"""Copies as commands, by the route that each takes: copy engine, one kernel that stores several, or host memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.routes import Routes
from peergrid.runtime.cuda.lowering.transfer import Side, Transfer, memcpy_2d, memcpy_3d, transfer_of
from peergrid.schedule.ops import Copy, Queue


@dataclass(frozen=True, eq=False)
class Copies:
    """The copies of one schedule."""

    execution: ExecutionContext
    routes: Routes

    def write(self, commands: CommandWriter, number: int, ops: Sequence[Copy]) -> None:
        """The calls of one copy, or of several that are stores of one queue."""
        route = self.routes.of(ops[0]).route
        if route == "store":
            self._stores(commands, number, ops)
            return
        (op,) = ops
        moved, queue = self._transfer(op), op.queue
        if route == "copy":
            memcpy(commands, number, queue, moved.source, moved.target, moved)
        else:
            staged = moved.packed(self.execution.staging(op, moved.bytes))
            memcpy(commands, number, queue, moved.source, staged, moved)
            memcpy(commands, number, queue, staged, moved.target, moved)

    def _transfer(self, op: Copy) -> Transfer:
        memory = self.execution.memory
        source, target = (memory.pointer(d, op.field, op.slot) for d in (op.source_device, op.target_device))
        return transfer_of(op, memory.plan.blocks, (source, target))

    def _stores(self, commands: CommandWriter, number: int, ops: Sequence[Copy]) -> None:
        """One kernel of the source device that stores several halos into their targets."""
        queue, size = ops[0].queue, self.execution.layout.problem.itemsize
        table = np.zeros(len(ops), service.COPY_BOX)
        blocks = 0
        for row, moved in zip(table, map(self._transfer, ops), strict=True):
            shape = (*moved.counts, moved.run // size)
            row["shape"] = (1,) * (3 - len(shape)) + shape
            row["source"], row["target"], row["first"] = moved.source.address, moved.target.address, blocks
            for name, side in (("source_pitch", moved.source), ("target_pitch", moved.target)):
                row[name][2 - len(side.pitches) :] = [pitch // size for pitch in side.pitches]
            blocks += -(-moved.bytes // size // service.STORE_THREADS)
        values = np.zeros(1, service.STORES)
        values["boxes"], values["count"] = self.execution.devices.constant(queue.device, table), len(ops)
        kernel = self.execution.utility_kernel(queue.device, f"store_{size}")
        commands.launch(number, queue, kernel, blocks, service.STORE_THREADS, values)


def memcpy(commands: CommandWriter, number: int, queue: Queue, source: Side, target: Side, moved: Transfer) -> None:
    """The call that copies runs of bytes from one side to the other."""
    stream = commands.devices.stream(queue)
    if not moved.counts:
        commands.call(number, queue, "cuMemcpyAsync", target.address, source.address, moved.run, stream)
        return
    describe = memcpy_2d if len(moved.counts) == 1 else memcpy_3d
    words = describe(source, target, moved.counts, moved.run)
    commands.keep.append(words)
    name = "cuMemcpy2DAsync" if len(moved.counts) == 1 else "cuMemcpy3DAsync"
    commands.call(number, queue, name, int(words.ctypes.data), stream)
