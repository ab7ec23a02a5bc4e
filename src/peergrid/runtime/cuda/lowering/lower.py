"""From a schedule to command buffers: each operation becomes driver calls, resolved to addresses once.

Neighbouring computations of one pass in one queue become one set of launches, neighbouring stores one kernel. How
copies are made is in `copies`, what orders the queues in `signals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from peergrid.codegen.cuda.reduce import reduce_program
from peergrid.runtime.cuda.commands.buffer import CommandBuffer
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.concurrent import together
from peergrid.runtime.cuda.lowering.copies import Copies
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.grouped import GroupedMessages
from peergrid.runtime.cuda.lowering.items import Numbered, computations, hosts, items
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.merged import Merged, implied
from peergrid.runtime.cuda.lowering.messages import Messages
from peergrid.runtime.cuda.lowering.put import PutMessages
from peergrid.runtime.cuda.lowering.routes import Routes
from peergrid.runtime.cuda.lowering.signals import Edge, advance_step_counter, await_set, barrier, edges, signal, words
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan, awaited_word
from peergrid.schedule import Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Flag,
    HostBarrier,
    Queue,
    Receive,
    Record,
    Reduce,
    Semaphore,
    Send,
    Signal,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    queues_of,
)
from peergrid.schedule.unroll import increments


@dataclass(frozen=True)
class Lowered:
    """A schedule ready to run.

    buffers: commands by host; reasons: the reasons for which halos take other routes than the requested ones;
    increments: of each flag, per iteration; edges: the operations that semaphores order across GPUs; of_all: the
    schedule of all processes, if this is a part; messages: those that processes carry, if there are any; captured:
    whether graphs are made of the buffers.
    """

    schedule: Schedule
    buffers: dict[int, CommandBuffer]
    queues: tuple[Queue, ...]
    reasons: frozenset[str]
    increments: dict[Flag, int]
    edges: Mapping[Flag, Edge] = field(default_factory=dict, kw_only=True)
    of_all: Schedule | None = field(default=None, kw_only=True)
    messages: Messages | None = field(default=None, kw_only=True)
    captured: bool = field(default=False, kw_only=True)

    @property
    def whole(self) -> Schedule:
        return self.schedule if self.of_all is None else self.of_all


class Noting(Protocol):
    """The additions of a recorded run to the commands of each item, operations that are carried out together."""

    def before(self, commands: CommandWriter, item: Sequence[Numbered]) -> None: ...
    def after(self, commands: CommandWriter, item: Sequence[Numbered]) -> None: ...


def lower(
    execution: ExecutionContext, schedule: Schedule, captured: bool = False, noting: Noting | None = None
) -> Lowered:
    """The command buffers of a schedule.

    captured: for a graph, where step counters on the devices count the steps; noting: for a recorded run.
    """
    work = Lowering(execution, schedule, captured, noting)
    buffers = {host: work.host(host) for host in hosts(schedule)}
    queues = tuple(sorted({queue for op in schedule.ops for queue in queues_of(op)}))
    carried = work.messages if isinstance(work.messages, Messages) and work.messages.each else None
    counts = increments(schedule) | (carried.each if carried else {})
    return Lowered(
        schedule,
        buffers,
        queues,
        frozenset(work.copies.routes.reasons),
        counts,
        edges=edges(schedule),
        messages=carried,
        captured=captured,
    )


@dataclass
class Lowering:
    """The state of one translation."""

    execution: ExecutionContext
    schedule: Schedule
    captured: bool
    noting: Noting | None = None

    def __post_init__(self) -> None:
        kernels = kernels_of(self.execution)
        merged = kernels.merged(self.schedule) if self._merging else ()
        self.plans = kernels.plans(self.schedule, merged)
        self.merged = {one.second[0]: one for one in merged}
        continued = {one for one in merged if self._continues(one)}
        self.passed_over = implied(self.schedule, merged, continued) | {n for one in merged for n in one.first}
        self.copies = Copies(self.execution, self._routes)
        self.messages: Messages | GroupedMessages | PutMessages = Messages(self.execution, self.schedule)
        devices = self.execution.devices
        processes, calls, heap = devices.processes, devices.calls, devices.heap
        if processes is not None and calls is not None:
            self.messages = GroupedMessages(self.execution, calls, processes.of_device)
        if processes is not None and heap is not None:
            self.messages = PutMessages.of(self.execution, processes, heap, self.schedule)
        self.parts: dict[tuple[int, int], dict[int, Queue]] = {}  # what computes a device's part of a pass, by number
        for number, ops in computations(self.schedule):
            self.parts.setdefault((ops[0].device, ops[0].level), {})[number] = ops[0].queue

    def _continues(self, merged: Merged) -> bool:
        """True if launches of its own follow what the first queue awaits."""
        plan = self.plans[1]
        return isinstance(plan, StreamingPlan) and plan.continues(merged.device, (merged.whole,), merged.boxes)

    @property
    def _merging(self) -> bool:
        """True where computations in two queues may be one launch: in graphs and recorded runs they are not."""
        driver, ordinals = self.execution.devices.driver, self.execution.devices.ordinals
        here = (driver.awaits_words(ordinals[device]) for device in self.execution.devices.mine)
        return not self.captured and self.noting is None and all(here)

    @property
    def _routes(self) -> Routes:
        execution, blocks = self.execution, self.execution.memory.plan.blocks
        streamed = any(plan.streams for plan in self.plans.values())
        costs, reaches = execution.gpu.costs, execution.peers.reaches
        return Routes(self.schedule, execution.layout, blocks, costs, streamed, reaches)

    @property
    def clocked(self) -> bool:
        """True where kernels read the step counter: their sources and records depend on it."""
        problem = self.execution.layout.problem
        asked = problem.signals or problem.receivers or problem.reductions or self.execution.norms is not None
        counting = self.execution.own is not None and self.execution.own.counts_steps
        return self.captured and (counting or bool(asked))

    def host(self, host: int) -> CommandBuffer:
        """The command buffer of one host."""
        commands, items = CommandWriter(self.execution.devices), list(self._items(host))
        last = {item[0][1].queue: n for n, item in enumerate(items) if isinstance(item[0][1], Compute | Reduce)}
        for n, item in enumerate(items):
            if self.noting is not None:
                self.noting.before(commands, item)
            self._item(commands, item)
            if self.noting is not None:
                self.noting.after(commands, item)
            if self.clocked:
                for queue in (queue for queue, at in last.items() if at == n):
                    # nothing later in this iteration reads its step counter
                    advance_step_counter(self.execution, commands, item[0][0], queue, self.schedule.steps)
        return commands.finish()

    def _items(self, host: int) -> Iterator[list[Numbered]]:
        """The host's operations in order, those that go together joined."""
        for key, ops in items(self.schedule, host):
            if key[0] == "copy":
                yield from self._by_route(ops)
            elif key[0] in ("compute", "messages") or (key[0] == "semaphores" and self.noting is None):
                yield ops
            else:
                yield from ([one] for one in ops)

    def _by_route(self, ops: list[Numbered]) -> Iterator[list[Numbered]]:
        """Copies of one queue: stores together, others one by one."""
        for route, part in groupby(ops, key=lambda numbered: self.copies.routes.of(numbered[1]).route):  # type: ignore[arg-type]
            if route == "store":
                yield list(part)
            else:
                yield from ([one] for one in part)

    def _item(self, commands: CommandWriter, item: list[Numbered]) -> None:
        number, op = item[0]
        execution = self.execution
        if number in self.passed_over:
            return
        match op:
            case Compute():
                self._compute(commands, number, [part for _, part in item if isinstance(part, Compute)])
            case Reduce():
                self._reduce(commands, number, op)
            case Copy():
                self.copies.write(commands, number, [part for _, part in item if isinstance(part, Copy)])
            case Send() | Receive():
                self.messages.write(commands, [(n, part) for n, part in item if isinstance(part, Send | Receive)])
            case Record():
                commands.record(number, op.queue, op.event)
            case Wait():
                commands.wait(number, op.queue, op.event)
            case SignalOp(flag=Semaphore()) | SignalWait(flag=Semaphore()):
                words(execution, commands, number, [part for _, part in item if isinstance(part, Signal)])
            case SignalOp() | SignalWait():
                signal(execution, commands, number, op)
            case Sync():
                commands.poll(number, op.target)
            case HostBarrier():
                commands.barrier(number, execution.barrier(op.hosts), len(op.hosts))
            case DeviceBarrier():
                barrier(commands, number, op.queues)

    def _compute(self, commands: CommandWriter, number: int, ops: list[Compute]) -> None:
        """The launches of one pass, each with those that may run at the same time."""
        first, plan = ops[0], self.plans[ops[0].steps]
        if number in self.merged and isinstance(plan, StreamingPlan):
            self._merged(commands, number, first, plan, self.merged[number])
        else:
            boxes = tuple(op.box for op in ops)
            self._launched(commands, number, first, plan.launches(self.execution, first.device, boxes))
            self._sums(commands, number, first)

    def _merged(self, commands: CommandWriter, number: int, op: Compute, plan: StreamingPlan, merged: Merged) -> None:
        """The launches of two queues' parts in the second one; the first goes on once its own part is there."""
        before, queue = merged.queues
        commands.tie(number, before, queue)
        launches = plan.launches(self.execution, merged.device, (merged.whole,), merged.boxes)
        sides = self._launched(commands, number, op, launches)
        if plan.begins(merged.device, (merged.whole,), merged.boxes):
            for side in sides:  # neighbours may change ghost cells once they hear of the first queue
                commands.tie(number, side, before)
        await_set(commands, number, before, awaited_word(self.execution, merged.device))
        behind = plan.launches_of_awaited(self.execution, merged.device, (merged.whole,), merged.boxes)
        self._launched(commands, number, replace(op, queue=before), behind)

    def _launched(
        self, commands: CommandWriter, number: int, op: Compute, launches: Iterable[KernelLaunch]
    ) -> tuple[Queue, ...]:
        """Launches, each with those that may run at the same time: in streams of their own, forked and joined; the
        streams.
        """
        queue, found = op.queue, dict[Queue, None]()
        for launch, others in together(launches, queue):
            sides = dict.fromkeys(side for side, _ in others)
            for side in sides:
                commands.tie(number, queue, side)
            self._advance(commands, number, op, launch, queue)
            for side, other in others:
                self._advance(commands, number, op, other, side)
            for side in sides:
                commands.tie(number, side, queue)
            found |= sides
        return tuple(found)

    def _reduce(self, commands: CommandWriter, number: int, op: Reduce) -> None:
        """The launch of a reduction of what a device owns."""
        execution = self.execution
        program = reduce_program(execution.layout.problem, op.reduction)
        blocks, reduced = execution.reductions.struct(op.reduction, op.device)
        values = execution.arguments(op.device, op.box)
        launch = KernelLaunch.of(execution, op.device, program, blocks, values, (reduced,))
        launch.write(commands, number, op.queue, (1 - op.slot, op.slot), op.level, self._clock(op.queue))

    def _sums(self, commands: CommandWriter, number: int, op: Compute) -> None:
        """The sums of a pass's norms, behind the last of the parts in which a device computes it.

        During the next pass they cost more here, where its tiles have no higher priority (decision 034).
        """
        parts, sums = self.parts[op.device, op.level], self.plans[op.steps].sums(self.execution, op.device)
        if sums is not None and number == max(parts):
            for queue in sorted(set(parts.values()) - {op.queue}):
                commands.tie(number, queue, op.queue)
            self._advance(commands, number, op, sums, op.queue)

    def _advance(self, commands: CommandWriter, number: int, op: Compute, launch: KernelLaunch, queue: Queue) -> None:
        level, clock = op.level + launch.later, self._clock(op.queue)
        launch.write(commands, number, queue, (op.source, op.target), level, clock)

    def _clock(self, queue: Queue) -> int | None:
        """The step counter that launches of a queue ask, in graphs."""
        return self.execution.step_counter(queue) if self.captured else None
