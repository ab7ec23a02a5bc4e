"""From a schedule to command buffers: each operation becomes driver calls, resolved to addresses once.

Neighbouring computations of one pass in one queue become one set of launches, neighbouring stores one kernel. How
copies are made is in `copies`, what orders the queues in `signals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from peergrid.codegen.cuda.reduce import SHARED_BYTES, THREADS
from peergrid.runtime.cuda.commands.buffer import CommandBuffer, CommandWriter, Relocation
from peergrid.runtime.cuda.lowering.copies import Copies
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import (
    ByRegions,
    ByStreams,
    ByTiles,
    Passes,
    Summed,
    WithShells,
    computations,
    joint,
    kernels_of,
    reduce_kernel,
)
from peergrid.runtime.cuda.lowering.routes import Choice
from peergrid.runtime.cuda.lowering.semaphores import Edge, Semaphores
from peergrid.runtime.cuda.lowering.shelled import Shelled
from peergrid.runtime.cuda.lowering.signals import advance_step_counter, barrier, record, signal, tie, wait
from peergrid.runtime.cuda.lowering.streamed import Streamed
from peergrid.runtime.cuda.lowering.sweeps import OneStep, SeveralSteps, Start, Sweep, WithNorms
from peergrid.schedule import Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Record,
    Reduce,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    hosts_of,
    queues_of,
)

Numbered = tuple[int, Op]


@dataclass(frozen=True)
class Lowered:
    """A schedule ready to run: command buffers by host, the routes of halos, the increment of each flag per iteration;
    edges: the operations that semaphores order across GPUs.
    """

    schedule: Schedule
    buffers: dict[int, CommandBuffer]
    queues: tuple[Queue, ...]
    choices: frozenset[Choice]
    increments: dict[Flag, int]
    edges: Mapping[Flag, Edge] = field(default_factory=dict, kw_only=True)


def lower(execution: ExecutionContext, schedule: Schedule, captured: bool = False) -> Lowered:
    """The command buffers of a schedule. captured: for a graph, where step counters on the devices count the steps."""
    work = Lowering(execution, schedule, captured)
    buffers = {host: work.host(host) for host in sorted({h for op in schedule.ops for h in hosts_of(op)})}
    queues = tuple(sorted({queue for op in schedule.ops for queue in queues_of(op)}))
    rising = increments(schedule) | work.semaphores.increments
    return Lowered(schedule, buffers, queues, frozenset(work.copies.choices), rising, edges=work.semaphores.edges)


def increments(schedule: Schedule) -> dict[Flag, int]:
    """How far each flag rises in one iteration."""
    counts: dict[Flag, int] = {}
    for op in schedule.ops:
        if isinstance(op, SignalOp):
            counts[op.flag] = max(counts.get(op.flag, 0), op.value)
    return counts


@dataclass
class Lowering:
    """The state of one translation."""

    execution: ExecutionContext
    schedule: Schedule
    captured: bool

    def __post_init__(self) -> None:
        self.copies = Copies(self.execution, self.schedule.options)
        self.semaphores = Semaphores(self.execution, self.schedule)
        self.parts: dict[tuple[int, int], dict[int, Queue]] = {}  # what computes a device's part of a pass, by number
        for number, ops in computations(self.schedule):
            self.parts.setdefault((ops[0].device, ops[0].level), {})[number] = ops[0].queue
        made = kernels_of(self.execution).passes(self.schedule)
        self.sweeps = {steps: self._sweep(passes) for steps, passes in made.items()}

    @property
    def clocked(self) -> bool:
        """Whether kernels ask clocks for the time step: what they add to it, or leave of it, depends on it."""
        problem = self.execution.layout.problem
        asked = problem.signals or problem.receivers or problem.reductions or self.execution.norms is not None
        return self.captured and bool(asked)

    def host(self, host: int) -> CommandBuffer:
        """The command buffer of one host."""
        commands, items = CommandWriter(), list(self._items(host))
        last = {item[0][1].queue: n for n, item in enumerate(items) if isinstance(item[0][1], Compute | Reduce)}
        for n, item in enumerate(items):
            self._item(commands, item)
            if self.clocked:
                for queue in (queue for queue, at in last.items() if at == n):
                    advance_step_counter(
                        self.execution, commands, queue, self.schedule.steps
                    )  # nothing later in this iteration reads its step counter
        return commands.finish()

    def _items(self, host: int) -> Iterator[list[Numbered]]:
        """The host's operations in order, those that go together joined."""
        mine = [(n, op) for n, op in enumerate(self.schedule.ops) if host in hosts_of(op)]
        for key, part in groupby(mine, key=lambda numbered: joint(*numbered)):
            ops = list(part)
            if key[0] == "copy":
                yield from self._by_route(ops)
            elif key[0] == "compute":
                yield ops
            else:
                yield from ([one] for one in ops)

    def _by_route(self, ops: list[Numbered]) -> Iterator[list[Numbered]]:
        """Copies of one queue: stores together, others one by one."""
        for route, part in groupby(ops, key=lambda numbered: self.copies.choice(numbered[1]).route):  # type: ignore[arg-type]
            if route == "store":
                yield list(part)
            else:
                yield from ([one] for one in part)

    def _item(self, commands: CommandWriter, item: list[Numbered]) -> None:
        number, op = item[0]
        execution = self.execution
        match op:
            case Compute():
                self._compute(commands, number, [part for _, part in item if isinstance(part, Compute)])
            case Reduce():
                self._reduce(commands, number, op)
            case Copy():
                self.copies.write(commands, number, [part for _, part in item if isinstance(part, Copy)])
            case Record() | Wait():
                self.semaphores.write(commands, number)
                if isinstance(op, Record) and self.semaphores.local(op.event):
                    record(execution, commands, number, op.queue, op.event)
                elif isinstance(op, Wait) and not self.semaphores.crosses(op):
                    wait(execution, commands, number, op.queue, op.event)
            case SignalOp() | SignalWait():
                signal(execution, commands, number, op)
            case Sync(target=Queue() as queue):
                context = execution.devices.context(queue.device)
                commands.poll(number, context, execution.entry("cuStreamQuery"), execution.devices.stream(queue))
            case Sync(target=Event() as event):
                context = execution.devices.context(event.device)
                commands.poll(number, context, execution.entry("cuEventQuery"), execution.devices.event(event))
            case HostBarrier():
                commands.barrier(number, execution.barrier(op.hosts), len(op.hosts))
            case DeviceBarrier():
                barrier(execution, commands, number, op.queues)

    def _sweep(self, made: Passes) -> Sweep:
        match made:
            case ByRegions(works):
                return OneStep(self.execution, [boxes for _, boxes in works])
            case ByTiles(kernel):
                return SeveralSteps(self.execution, kernel)
            case WithShells(kernel, works):
                return Shelled(self.execution, kernel, works)
            case ByStreams(kernel, works):
                return Streamed(self.execution, kernel, works)
            case Summed(kernel, _, beyond):
                owned = SeveralSteps(self.execution, kernel)
                return WithNorms(self.execution, owned, None if beyond is None else self._sweep(beyond))

    def _compute(self, commands: CommandWriter, number: int, ops: list[Compute]) -> None:
        """The launches of one pass, each with those that may run beside it."""
        first, beside = ops[0], list[Start]()
        for start in self.sweeps[first.steps].starts(first.device, tuple(op.box for op in ops)):
            if start.beside:
                beside.append(start)
            else:
                self._together(commands, number, first, start, beside)
                beside = []
        self._sums(commands, number, first)

    def _reduce(self, commands: CommandWriter, number: int, op: Reduce) -> None:
        """The launch of a reduction of what a device owns."""
        execution, ndim = self.execution, op.box.ndim
        kernel = reduce_kernel(execution.layout.problem, op.reduction)
        blocks, reduced = execution.reductions.struct(op.reduction, op.device)
        values = execution.template(op.device).copy()
        values["lo"][0, :ndim], values["hi"][0, :ndim] = op.box.lo, op.box.hi
        function = execution.programs.function(op.device, kernel.source, kernel.entry)
        start = Start(function, blocks, THREADS, SHARED_BYTES, values, (reduced,))
        self._launch(commands, number, op.queue, start, (1 - op.slot, op.slot), op.level, op.queue)

    def _together(self, commands: CommandWriter, number: int, op: Compute, start: Start, beside: list[Start]) -> None:
        """A launch, and in streams of their own, forked and joined, those that find room beside it."""
        queue = op.queue
        places = [place - 1 for place in accumulate((not other.behind for other in beside), initial=0)][1:]
        names = (f"beside {queue.name}", f"beside {queue.name} too")
        sides = [Queue(queue.device, name, queue.priority) for name in names[: len(set(places))]]
        for side in sides:
            tie(self.execution, commands, number, queue, side)
        self._advance(commands, number, op, start, queue)
        for place, other in zip(places, beside, strict=True):
            self._advance(commands, number, op, other, sides[place % len(sides)])
        for side in sides:
            tie(self.execution, commands, number, side, queue)

    def _sums(self, commands: CommandWriter, number: int, op: Compute) -> None:
        """The sums of a pass's norms, behind the last of the parts in which a device computes it.

        Beside the next pass they cost more here, where its tiles have no higher priority (decision 034).
        """
        parts, sweep = self.parts[op.device, op.level], self.sweeps[op.steps]
        if isinstance(sweep, WithNorms) and number == max(parts):
            for queue in sorted(set(parts.values()) - {op.queue}):
                tie(self.execution, commands, number, queue, op.queue)
            self._advance(commands, number, op, sweep.sums(op.device), op.queue)

    def _advance(self, commands: CommandWriter, number: int, op: Compute, start: Start, queue: Queue) -> None:
        self._launch(commands, number, queue, start, (op.source, op.target), op.level + start.later, op.queue)

    def _launch(
        self,
        commands: CommandWriter,
        number: int,
        queue: Queue,
        start: Start,
        slots: tuple[int, int],
        level: int,
        counted: Queue,
    ) -> None:
        """A launch that reads and writes slots from a time level on; counted: the queue whose step counter it asks."""
        execution, values, (source, target) = self.execution, start.values, slots
        values["source"], values["target"] = source, target
        for places, slot, kind in ((start.before, source, "pitch"), (start.after, target, "into")):
            if places is not None:
                values["fields"]["slot"][0, :, slot] = places.addresses
                values["fields"][kind][0] = places.pitches
        if self.captured:
            values["clock"], values["step"] = execution.step_counter(counted), level
        address = commands.launch(
            number,
            execution.devices.context(queue.device),
            execution.entry("cuLaunchKernel"),
            start.function,
            execution.devices.stream(queue),
            start.blocks,
            start.threads,
            values,
            start.shared,
            start.given(target),
            start.rows,
        )
        if not self.captured:
            offset = int(values.dtype.fields["step"][1])  # type: ignore[index]
            commands.relocations.append(Relocation(address + offset, level, None))
