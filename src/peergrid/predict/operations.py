"""The costs of operations on hosts, queues and links: a table from the kind of operation to its effect.

Operations are simulated in the order in which hosts issue them; a time is the moment when a resource becomes free.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from peergrid.costs.machine import Line, Machine
from peergrid.grid import Box
from peergrid.predict.kernels import Duration
from peergrid.runtime.cuda.lowering.concurrent import together
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Receive,
    Record,
    Reduce,
    Semaphore,
    Send,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
)
from peergrid.schedule.timeline import Span

MESSAGES = 64  # of a port that are kept: earlier ones are over


@dataclass(frozen=True, slots=True)
class Timed:
    """A launch with its times; concurrent, waits: as in `KernelWork`."""

    duration: Duration
    concurrent: bool = False
    waits: bool = False


@dataclass(frozen=True)
class Given:
    """The input of a simulation: data of a schedule and a machine.

    passes: the launches of computations, by device, steps and boxes; route: the route that a copy takes; captured:
    whether graphs are launched; several: whether several threads issue; tiles_stay: whether tiles stay for a whole
    pass, so that a kernel that stores halos waits for their end; moved: bytes of contiguous memory that take a copy
    engine as long as a halo, if other than its own.
    """

    machine: Machine
    itemsize: int
    passes: Callable[[int, int, tuple[Box, ...]], Sequence[Timed]]
    route: Callable[[Copy], str]
    captured: bool = False
    several: bool = False
    tiles_stay: bool = False
    moved: Callable[[Copy], int] | None = None

    def start(self) -> float:
        """Seconds of a kernel in addition to its work."""
        return self.machine.delays.node if self.captured else self.machine.delays.start

    def bytes_of(self, op: Copy) -> int:
        """The bytes in whose time a copy engine moves a halo."""
        return op.source_box.size * self.itemsize if self.moved is None else self.moved(op)

    def line(self, source: int, target: int, route: str) -> Line:
        """The link between two devices."""
        machine = self.machine
        if machine.network is not None and source // machine.gpus != target // machine.gpus:
            return machine.network
        return {"copy": machine.copy, "store": machine.store, "host": machine.host}[route]


@dataclass
class State:
    """The times at which hosts (threads that issue), queues and GPUs are free, and events and flags come.

    ports: from when to when the latest messages leave or reach a GPU; messages: when those of a tag leave and arrive;
    copying: queues whose latest work was a copy; together: the semaphores, by number, that one call holds with the
    operation before.
    """

    given: Given
    hosts: dict[int, float] = field(default_factory=dict)
    queues: dict[Queue, float] = field(default_factory=dict)
    busy: dict[int, float] = field(default_factory=dict)
    ports: dict[tuple[int, str], list[tuple[float, float]]] = field(default_factory=dict)
    events: dict[Event, tuple[float, int]] = field(default_factory=dict)
    flags: dict[tuple[Flag, int], float] = field(default_factory=dict)
    messages: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    copying: set[Queue] = field(default_factory=set)
    together: frozenset[int] = frozenset()
    spans: list[Span] = field(default_factory=list)

    def issue(self, host: int, seconds: float) -> float:
        """Let the host issue for some time; the time when the work reaches the queue."""
        return self.call(host, 0.0 if self.given.captured else seconds)

    def call(self, host: int, seconds: float) -> float:
        """The same for an operation outside graphs."""
        slower = self.given.machine.calls.beside if self.given.several else 1.0
        self.hosts[host] = self.hosts.get(host, 0.0) + seconds * slower
        return self.hosts[host] + self.given.machine.delays.arrival

    def kernel(self, queue: Queue, ready: float, took: Duration, first: bool = False) -> tuple[float, float]:
        """Run a kernel of a queue once it is ready; its start and end. Concurrent kernels share the GPU.

        first: whether its blocks replace ended blocks of others before waiting ones do.
        """
        start = max(self.queues.get(queue, 0.0), ready) + self.given.start()
        served = max(start, self.busy.get(queue.device, 0.0)) + took.busy
        end = start + max(took.alone, took.busy) if first else max(start + took.alone, served)
        self.busy[queue.device] = served
        self.copying.discard(queue)
        self.queues[queue] = end
        return start, end


def compute(state: State, number: int, ops: Sequence[Any]) -> None:
    """The launches of a pass; concurrent ones in streams of their own, forked and joined by events."""
    first, calls, delays = ops[0], state.given.machine.calls, state.given.machine.delays
    queue: Queue = first.queue
    begun = None
    for timed, others in together(state.given.passes(first.device, first.steps, tuple(op.box for op in ops)), queue):
        sides = dict.fromkeys(side for side, _ in others)
        fork = state.issue(first.host, 2 * calls.event * len(sides)) + delays.event
        for side in sides:
            state.queues[side] = max(fork, state.queues.get(queue, 0.0) + delays.event)
        ready = state.issue(first.host, calls.launch)
        before = state.queues.get(queue, 0.0)
        for side, other in others:
            arrival = state.issue(first.host, calls.launch)
            start, _ = state.kernel(side, arrival, other.duration)
            begun = start if begun is None else min(begun, start)
        state.queues[queue] = before
        start, _ = state.kernel(queue, ready, timed.duration)
        begun = start if begun is None else min(begun, start)
        state.issue(first.host, 2 * calls.event * len(sides))
        ends = [state.queues[side] + delays.event for side in sides]
        state.queues[queue] = max([state.queues[queue], *ends])
    if begun is not None:
        state.spans.append(Span(number, queue, begun, state.queues[queue]))


def reduce(state: State, number: int, ops: Sequence[Any]) -> None:
    """A pass over the reduced fields, which reads them once."""
    (op,) = ops
    took = op.box.size * state.given.itemsize / state.given.machine.bandwidth
    ready = state.issue(op.host, state.given.machine.calls.launch)
    start, end = state.kernel(op.queue, ready, Duration(took, took))
    state.spans.append(Span(number, op.queue, start, end))


def copy(state: State, number: int, ops: Sequence[Any]) -> None:
    """Halos of one queue: stores of one kernel, or a copy each."""
    given, first = state.given, ops[0]
    machine, route = given.machine, given.route(first)
    if route == "store":
        _stores(state, number, ops)
        return
    for op in ops:
        count = given.bytes_of(op)
        ready = state.issue(op.host, machine.calls.copy * (2 if route == "host" else 1))
        line = given.line(op.source_device, op.target_device, route)
        start = max(state.queues.get(op.queue, 0.0), ready)
        start += 0.0 if op.queue in state.copying else machine.delays.engine
        end = _sent(state, op, start, line, count)
        state.queues[op.queue] = end
        state.copying.add(op.queue)
        state.spans.append(Span(number, op.queue, start, end))


def _stores(state: State, number: int, ops: Sequence[Any]) -> None:
    """One kernel that stores several halos."""
    given, first = state.given, ops[0]
    ready = state.issue(first.host, given.machine.calls.launch)
    if given.tiles_stay:
        ready = max(ready, state.busy.get(first.queue.device, 0.0))
    inside = [op for op in ops if op.source_device == op.target_device]
    moved = sum(2 * op.source_box.size * given.itemsize for op in inside)
    took = moved / given.machine.bandwidth
    room = first.queue.priority < 0 and not given.tiles_stay
    start, end = state.kernel(first.queue, ready, Duration(took, took), first=room)
    for op in ops:
        if op.source_device != op.target_device:
            line = given.line(op.source_device, op.target_device, "store")
            end = max(end, _sent(state, op, start, line, op.source_box.size * given.itemsize))
    state.queues[first.queue] = end
    state.spans.append(Span(number, first.queue, start, end))


def _sent(state: State, op: Copy | Send, ready: float, line: Line, count: float) -> float:
    """The time at which a message has arrived. A GPU sends one message at a time and receives one, at full speed: the
    one that reaches the port first.
    """
    keys, took = ((op.source_device, "out"), (op.target_device, "in")), count / line.bandwidth
    ports = [state.ports.setdefault(key, []) for key in keys]
    start = ready
    for begin, end in sorted(one for port in ports for one in port if one[1] > ready):
        if end > start and begin < start + took:
            start = end
    for port in ports:
        insort(port, (start, start + took))
        del port[:-MESSAGES]
    return start + line.seconds(count)


def send(state: State, number: int, ops: Sequence[Any]) -> None:
    """The messages of a group to other processes, in one call: the queue continues when the cells have left."""
    given, first = state.given, ops[0]
    ready = max(state.queues.get(first.queue, 0.0), state.issue(first.host, given.machine.calls.copy))
    left = ready
    for op in ops:
        count = op.source_box.size * given.itemsize
        line = given.line(op.source_device, op.target_device, "copy")
        state.messages.setdefault(op.tag, []).append((ready, _sent(state, op, ready, line, count)))
        left += count / line.bandwidth
    state.queues[first.queue] = left
    state.spans.append(Span(number, first.queue, ready, left))


def receive(state: State, number: int, ops: Sequence[Any]) -> None:
    """The queue waits for the word that announces the next messages of a group."""
    given, first = state.given, ops[0]
    ready = max(state.queues.get(first.queue, 0.0), state.issue(first.host, given.machine.calls.copy))
    sent, arrived = zip(*(state.messages[op.tag].pop(0) for op in ops), strict=True)
    end = state.queues[first.queue] = max(ready, max(arrived) + given.machine.delays.words)
    state.spans.append(Span(number, first.queue, min(end, max(ready, *sent)), end))


def record(state: State, number: int, ops: Sequence[Any]) -> None:
    (op,) = ops
    ready = state.issue(op.host, state.given.machine.calls.event)
    state.events[op.event] = max(state.queues.get(op.queue, 0.0), ready), op.device


def wait(state: State, number: int, ops: Sequence[Any]) -> None:
    (op,) = ops
    machine = state.given.machine
    at, device = state.events.get(op.event, (0.0, op.queue.device))
    across = device != op.queue.device
    ready = state.issue(op.host, machine.calls.words if across else machine.calls.event)
    seen = at + (machine.delays.words if across else machine.delays.event)
    state.queues[op.queue] = max(state.queues.get(op.queue, 0.0), seen, ready)


def _words(state: State, number: int, op: SignalOp | SignalWait) -> float:
    """The time at which a queue comes to a semaphore: a call of its own, or of the one before. What follows is another
    graph, where graphs are launched.
    """
    calls, before = state.given.machine.calls, state.queues.get(op.queue, 0.0)
    if number in state.together:
        return before
    return max(before, state.call(op.host, calls.words + state.given.captured * calls.graph))


def raise_flag(state: State, number: int, ops: Sequence[Any]) -> None:
    (op,) = ops
    if isinstance(op.flag, Semaphore):
        start = state.queues[op.queue] = _words(state, number, op)
        state.flags[op.flag, op.value] = start + state.given.machine.delays.words
        return
    ready = state.issue(op.host, state.given.machine.calls.launch)
    start = max(state.queues.get(op.queue, 0.0), ready) + state.given.start()
    state.queues[op.queue] = start
    state.flags[op.flag, op.value] = start + state.given.machine.delays.neighbour


def await_flag(state: State, number: int, ops: Sequence[Any]) -> None:
    (op,) = ops
    if isinstance(op.flag, Semaphore):
        begun = state.given.captured * state.given.machine.delays.graph
        start = _words(state, number, op)
        state.queues[op.queue] = max(start, state.flags.get((op.flag, op.value), 0.0)) + begun
        return
    ready = state.issue(op.host, state.given.machine.calls.launch)
    start = max(state.queues.get(op.queue, 0.0), ready) + state.given.start()
    state.queues[op.queue] = max(start, state.flags.get((op.flag, op.value), 0.0))


def sync(state: State, number: int, ops: Sequence[Any]) -> None:
    """The host waits: its next operation begins after the awaited one."""
    (op,) = ops
    target = op.target
    at = state.queues.get(target, 0.0) if isinstance(target, Queue) else state.events.get(target, (0.0, 0))[0]
    state.hosts[op.host] = max(state.hosts.get(op.host, 0.0), at + state.given.machine.calls.sync)


def host_barrier(state: State, number: int, ops: Sequence[Any]) -> None:
    (op,) = ops
    last = max(state.hosts.get(host, 0.0) for host in op.hosts) + state.given.machine.calls.barrier
    for host in op.hosts:
        state.hosts[host] = last


def device_barrier(state: State, number: int, ops: Sequence[Any]) -> None:
    """Each of the queues waits for the earlier work of all others."""
    (op,) = ops
    machine, queues = state.given.machine, op.queues
    if len(queues) < 2:
        return
    calls = machine.calls.event + machine.calls.words * (len(queues) - 1)
    ready = max(state.issue(op.hosts[0], calls) for queue in queues)
    last = max(max(state.queues.get(queue, 0.0) for queue in queues), ready) + machine.delays.words
    for queue in queues:
        state.queues[queue] = last


COSTS: dict[type, Callable[[State, int, Sequence[Any]], None]] = {
    Compute: compute,
    Reduce: reduce,
    Copy: copy,
    Send: send,
    Receive: receive,
    Record: record,
    Wait: wait,
    SignalOp: raise_flag,
    SignalWait: await_flag,
    Sync: sync,
    HostBarrier: host_barrier,
    DeviceBarrier: device_barrier,
}
"""The effect of each kind of operation on hosts, queues and links; a new kind of operation is a new row."""


def carry_out(state: State, number: int, ops: Sequence[Op]) -> None:
    """Simulate operations that run together; `number` is that of the first one in the schedule."""
    kind = Compute if isinstance(ops[0], Compute) else type(ops[0])
    COSTS[kind](state, number, ops)
