"""From a schedule to tapes: each operation becomes the driver calls that carry it out, resolved to addresses once.

Neighbouring computations of one pass in one queue become one set of launches, neighbouring stores one kernel. How
copies are made is in `copies`, what orders the queues in `signals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from peergrid.runtime.cuda.lowering.copies import Copies
from peergrid.runtime.cuda.lowering.kernels import (
    ByRegions,
    ByTiles,
    Passes,
    Summed,
    WithShells,
    computations,
    joint,
    kernels_of,
)
from peergrid.runtime.cuda.lowering.posts import Edge, Posts
from peergrid.runtime.cuda.lowering.routes import Choice
from peergrid.runtime.cuda.lowering.shelled import Shelled
from peergrid.runtime.cuda.lowering.signals import meet, record, signal, tick, tie, wait
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.lowering.sweeps import OneStep, SeveralSteps, Start, Sweep, WithNorms
from peergrid.runtime.cuda.tapes.tape import Patch, Tape, TapeWriter
from peergrid.schedule import Schedule
from peergrid.schedule.ops import (
    Await,
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Raise,
    Record,
    Sync,
    Wait,
    hosts_of,
    queues_of,
)

Numbered = tuple[int, Op]


@dataclass(frozen=True)
class Lowered:
    """A schedule ready to run: the tape of each host, the route each halo takes, how far each flag rises; edges: the
    operations that words tie across GPUs.
    """

    schedule: Schedule
    tapes: dict[int, Tape]
    queues: tuple[Queue, ...]
    choices: frozenset[Choice]
    raised: dict[Flag, int]
    edges: Mapping[Flag, Edge] = field(default_factory=dict, kw_only=True)


def lower(station: Station, schedule: Schedule, captured: bool = False) -> Lowered:
    """The tapes of a schedule. captured: for a graph, where clocks on the devices count the steps."""
    work = Lowering(station, schedule, captured)
    tapes = {host: work.host(host) for host in sorted({h for op in schedule.ops for h in hosts_of(op)})}
    queues = tuple(sorted({queue for op in schedule.ops for queue in queues_of(op)}))
    rising = raised(schedule) | work.posts.raised
    return Lowered(schedule, tapes, queues, frozenset(work.copies.choices), rising, edges=work.posts.edges)


def raised(schedule: Schedule) -> dict[Flag, int]:
    """How far each flag rises in one turn."""
    counts: dict[Flag, int] = {}
    for op in schedule.ops:
        if isinstance(op, Raise):
            counts[op.flag] = max(counts.get(op.flag, 0), op.value)
    return counts


@dataclass
class Lowering:
    """The state of one translation."""

    station: Station
    schedule: Schedule
    captured: bool

    def __post_init__(self) -> None:
        self.copies = Copies(self.station, self.schedule.options)
        self.posts = Posts(self.station, self.schedule)
        self.parts: dict[tuple[int, int], dict[int, Queue]] = {}  # what computes a device's part of a pass, by number
        for number, ops in computations(self.schedule):
            self.parts.setdefault((ops[0].device, ops[0].level), {})[number] = ops[0].queue
        made = kernels_of(self.station).passes(self.schedule)
        self.sweeps = {steps: self._sweep(passes) for steps, passes in made.items()}

    @property
    def clocked(self) -> bool:
        """Whether kernels ask clocks for the time step: what they add to it, or leave of it, depends on it."""
        problem = self.station.layout.problem
        return self.captured and bool(problem.signals or problem.receivers or self.station.norms is not None)

    def host(self, host: int) -> Tape:
        """The tape of one host."""
        tape, items = TapeWriter(), list(self._items(host))
        last = {item[0][1].queue: n for n, item in enumerate(items) if isinstance(item[0][1], Compute)}
        for n, item in enumerate(items):
            self._item(tape, item)
            if self.clocked:
                for queue in (queue for queue, at in last.items() if at == n):
                    tick(self.station, tape, queue, self.schedule.steps)  # nothing later in this turn reads its clock
        return tape.finish()

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

    def _item(self, tape: TapeWriter, item: list[Numbered]) -> None:
        number, op = item[0]
        station = self.station
        match op:
            case Compute():
                self._compute(tape, number, [part for _, part in item if isinstance(part, Compute)])
            case Copy():
                self.copies.write(tape, number, [part for _, part in item if isinstance(part, Copy)])
            case Record() | Wait():
                self.posts.write(tape, number)
                if isinstance(op, Record) and self.posts.local(op.event):
                    record(station, tape, number, op.queue, op.event)
                elif isinstance(op, Wait) and not self.posts.crosses(op):
                    wait(station, tape, number, op.queue, op.event)
            case Raise() | Await():
                signal(station, tape, number, op)
            case Sync(target=Queue() as queue):
                context = station.devices.context(queue.device)
                tape.poll(number, context, station.entry("cuStreamQuery"), station.devices.stream(queue))
            case Sync(target=Event() as event):
                context = station.devices.context(event.device)
                tape.poll(number, context, station.entry("cuEventQuery"), station.devices.event(event))
            case HostBarrier():
                tape.meet(number, station.barrier(op.hosts), len(op.hosts))
            case DeviceBarrier():
                meet(station, tape, number, op.queues)

    def _sweep(self, made: Passes) -> Sweep:
        match made:
            case ByRegions(works):
                return OneStep(self.station, [boxes for _, boxes in works])
            case ByTiles(kernel):
                return SeveralSteps(self.station, kernel)
            case WithShells(kernel, works):
                return Shelled(self.station, kernel, works)
            case Summed(kernel, _, beyond):
                owned = SeveralSteps(self.station, kernel)
                return WithNorms(self.station, owned, None if beyond is None else self._sweep(beyond))

    def _compute(self, tape: TapeWriter, number: int, ops: list[Compute]) -> None:
        """The launches of one pass, each with those that may run beside it."""
        first, beside = ops[0], list[Start]()
        for start in self.sweeps[first.steps].starts(first.device, tuple(op.box for op in ops)):
            if start.beside:
                beside.append(start)
            else:
                self._together(tape, number, first, start, beside)
                beside = []
        self._sums(tape, number, first)

    def _together(self, tape: TapeWriter, number: int, op: Compute, start: Start, beside: list[Start]) -> None:
        """A launch, and in streams of their own, forked and joined, those that find room beside it."""
        queue = op.queue
        places = [place - 1 for place in accumulate((not other.behind for other in beside), initial=0)][1:]
        names = (f"beside {queue.name}", f"beside {queue.name} too")
        sides = [Queue(queue.device, name, queue.priority) for name in names[: len(set(places))]]
        for side in sides:
            tie(self.station, tape, number, queue, side)
        self._pass(tape, number, op, start, queue)
        for place, other in zip(places, beside, strict=True):
            self._pass(tape, number, op, other, sides[place % len(sides)])
        for side in sides:
            tie(self.station, tape, number, side, queue)

    def _sums(self, tape: TapeWriter, number: int, op: Compute) -> None:
        """The sums of a pass's norms, behind the last of the parts in which a device computes it.

        Beside the next pass they cost more here, where its tiles have no higher priority (decision 034).
        """
        parts, sweep = self.parts[op.device, op.level], self.sweeps[op.steps]
        if isinstance(sweep, WithNorms) and number == max(parts):
            for queue in sorted(set(parts.values()) - {op.queue}):
                tie(self.station, tape, number, queue, op.queue)
            self._pass(tape, number, op, sweep.sums(op.device), op.queue)

    def _pass(self, tape: TapeWriter, number: int, op: Compute, start: Start, queue: Queue) -> None:
        station, values = self.station, start.values
        values["source"], values["target"] = op.source, op.target
        for places, slot, kind in ((start.before, op.source, "pitch"), (start.after, op.target, "into")):
            if places is not None:
                values["fields"]["slot"][0, :, slot] = places.addresses
                values["fields"][kind][0] = places.pitches
        if self.captured:
            values["clock"], values["step"] = station.clock(op.queue), op.level + start.later
        address = tape.launch(
            number,
            station.devices.context(queue.device),
            station.entry("cuLaunchKernel"),
            start.function,
            station.devices.stream(queue),
            start.blocks,
            start.threads,
            values,
            start.shared,
            start.given(op.target),
            start.rows,
        )
        if not self.captured:
            offset = int(values.dtype.fields["step"][1])  # type: ignore[index]
            tape.patches.append(Patch(address + offset, op.level + start.later, None))
