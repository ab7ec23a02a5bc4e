"""A schedule as CUDA graphs, captured once and launched again and again.

Where several GPUs exchange, every stretch of a device's work between two events that tie it to others is a graph: a
launch is one call for the host, and no graph spans devices, which costs the devices more than events do. Elsewhere
many iterations are one graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from peergrid.errors import PeergridError
from peergrid.runtime.cuda.commands.buffer import CONTEXT, CommandBuffer
from peergrid.runtime.cuda.commands.replay import DONE
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.lowering.duration import IN_FLIGHT_SECONDS
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.submission.submitter import End, Submission, SubmissionPlan, Submitter
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Event, Queue, describe, queues_of
from peergrid.schedule.passes.captured import origins, ties

BUNDLES = (64, 8, 1)  # iterations of a schedule in one graph, where a graph can hold several


class Graphs:
    """The graphs of one executor."""

    def __init__(self, execution: ExecutionContext, submitter: Submitter) -> None:
        self._execution, self._submitter = execution, submitter
        self._stretched: dict[int, bool] = {}  # by identity of what the executor keeps
        self._buffers: dict[tuple[int, int], dict[int, CommandBuffer]] = {}

    def works(self, lowered: Lowered, times: int, step: int) -> Iterator[tuple[SubmissionPlan, int]]:
        """The commands to carry out, and their repetitions, for so many iterations."""
        set_step_counters(self._execution, lowered, step)
        if id(lowered) not in self._stretched:
            self._stretched[id(lowered)] = bool(origins(lowered.schedule, self._execution.devices.ordinals))
        stretched = self._stretched[id(lowered)]
        for iterations in (1,) if stretched else self._bundles(lowered):
            count, times = divmod(times, iterations)
            if count:
                key = (id(lowered), iterations)
                if key not in self._buffers:
                    self._buffers[key] = {
                        host: self._launching(lowered, each, iterations, stretched=stretched)
                        for host, each in lowered.buffers.items()
                    }
                yield self._submitter.work(lowered, self._buffers[key], iterations), count

    def _bundles(self, lowered: Lowered) -> tuple[int, ...]:
        """The numbers of iterations of graphs, the most first: each launch costs the device time."""
        most = max(1, int(IN_FLIGHT_SECONDS / (self._execution.step_seconds * lowered.schedule.steps)))
        return tuple(dict.fromkeys(min(bundle, 1 << most.bit_length() - 1) for bundle in BUNDLES))

    def _launching(
        self, lowered: Lowered, commands: CommandBuffer, iterations: int, *, stretched: bool
    ) -> CommandBuffer:
        """A command buffer that launches a graph of so many iterations of another one, or of each of its stretches, and
        makes the other calls as they are.
        """
        devices, whole = self._execution.devices, [*range(len(commands.ops))]
        made = CommandWriter(devices, keep=[*commands.keep])
        once = [(lowered.queues[0], whole)] if whole else []  # an iteration may have nothing to do
        for origin, rows in stretches(lowered.schedule, commands, devices.ordinals) if stretched else once:
            if origin is None:
                for row in rows:
                    made.same(commands, row)
                continue
            piece = CommandBuffer(commands.table[rows], tuple(commands.ops[row] for row in rows), (), commands.keep)
            queues = (origin,) if stretched else lowered.queues
            executable = self._capture(lowered, origin, queues, piece, iterations)
            made.keep.append(piece)
            made.call(piece.ops[0], origin, "cuGraphLaunch", executable, devices.stream(origin))
        return made.finish()

    def _capture(
        self, lowered: Lowered, origin: Queue, queues: Sequence[Queue], commands: CommandBuffer, iterations: int
    ) -> int:
        """The executable graph of some iterations of a command buffer; its queues begin and end with the origin's."""
        devices, stream = self._execution.devices, self._execution.devices.stream(origin)
        fork, join = rows_between(devices, origin, queues)
        devices.on(origin.device).begin_capture(stream)
        try:
            for piece, count in ((fork, 1), (commands, iterations), (join, 1)):
                end = self._submitter.carry_out(Submission(piece, every=count + 1), count)
                if end.state != DONE:
                    raise _failure(lowered, piece, end)
        except BaseException:
            devices.give_up_capture(origin.device, stream)
            raise
        return devices.graph(origin.device, stream)


def stretches(
    schedule: Schedule, commands: CommandBuffer, ordinals: tuple[int, ...]
) -> Iterator[tuple[Queue | None, list[int]]]:
    """The rows of a host of a schedule whose work was captured in stretches (see `schedule.passes.captured`), in order:
    those of one GPU that become a graph, with the queue that they fork from and join; and those that stay, with None.
    """
    stay = ties(schedule, ordinals)
    queues = {ordinals[queue.device]: queue for queue in origins(schedule, ordinals).values()}
    gpu_of = {n: ordinals[queue.device] for n, op in enumerate(schedule.ops) for queue in queues_of(op)}
    keys = [
        (op in stay, context) for op, context in zip(commands.ops, commands.table[:, CONTEXT].tolist(), strict=True)
    ]
    for (stays, _), found in groupby(range(len(keys)), key=keys.__getitem__):
        rows = list(found)
        yield None if stays else queues[gpu_of[commands.ops[rows[0]]]], rows


def rows_between(devices: Devices, origin: Queue, queues: Sequence[Queue]) -> tuple[CommandBuffer, CommandBuffer]:
    """The events that tie all queues to the origin at the capture's start, and back to it at its end."""
    others = [queue for queue in queues if queue != origin]
    fork, join = CommandWriter(devices), CommandWriter(devices)
    start = Event(origin.device, "graph start")
    if others:
        fork.record(-1, origin, start)
    for queue in others:
        fork.wait(-1, queue, start)
        done = Event(queue.device, f"graph end of {queue}")
        join.record(-1, queue, done)
        join.wait(-1, origin, done)
    return fork.finish(), join.finish()


def set_step_counters(execution: ExecutionContext, lowered: Lowered, step: int) -> None:
    """Set the step counters of all queues to a time step."""
    for queue in lowered.queues:
        execution.devices.on(queue.device).upload(execution.step_counter(queue), np.array([step], np.int64))


def _failure(lowered: Lowered, commands: CommandBuffer, end: End) -> PeergridError:
    number = commands.ops[end.row]
    what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "the graph's ends"
    return error(end.code, f"Capturing {what}")
