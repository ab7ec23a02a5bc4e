"""A schedule simulated iteration by iteration, until one takes as long as the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from peergrid.errors import UsageError
from peergrid.predict.operations import Given, State, carry_out
from peergrid.schedule import Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    Flag,
    Op,
    Queue,
    Receive,
    Send,
    SignalOp,
    SignalWait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.passes.semaphores import is_semaphore
from peergrid.schedule.timeline import Span

FEW, MOST = 4, 24  # iterations: long pipelines of queues need many until they repeat
SETTLED = 1e-3  # by how much two iterations may differ

Item = tuple[int, tuple[Op, ...]]


@dataclass(frozen=True)
class Simulated:
    """One iteration of a run: its seconds, the times of its operations, and the seconds of the busiest host."""

    seconds: float
    spans: tuple[Span, ...]
    host_seconds: float


def simulate(schedule: Schedule, given: Given, iterations: int = MOST) -> Simulated:
    """Simulate iterations of a schedule, at most `iterations`.

    Raises UsageError if an operation waits forever.
    """
    items = tuple(in_order(schedule, given))
    state = State(given, together=frozenset(_called_before(schedule)))
    reached = [0.0]
    durations: list[float] = []
    spans: tuple[Span, ...] = ()
    hosts = 0.0
    for iteration in range(iterations):
        state.spans.clear()
        state.flags = _last(state.flags)
        before = dict(state.hosts)
        for number, ops in items:
            carry_out(state, number, ops)
        hosts = max((at - before.get(key, 0.0) for key, at in state.hosts.items()), default=0.0)
        reached.append(max([*state.queues.values(), *state.hosts.values(), reached[-1]]))
        durations.append(reached[-1] - reached[-2])
        spans = tuple(state.spans)
        if iteration + 1 >= FEW and abs(durations[-1] - durations[-2]) <= SETTLED * durations[-1]:
            break
    last = durations[1:][-4:] or durations
    return Simulated(sum(last) / len(last), _from_zero(spans), hosts)


def _from_zero(spans: Sequence[Span]) -> tuple[Span, ...]:
    begin = min((span.start for span in spans), default=0.0)
    return tuple(Span(span.op, span.queue, span.start - begin, span.end - begin) for span in spans)


def in_order(schedule: Schedule, given: Given) -> Iterator[Item]:
    """The operations in an order in which hosts can issue them; those that run together are joined."""
    waiting = {
        host: list(_joined(schedule, host, given)) for host in sorted({h for op in schedule.ops for h in hosts_of(op)})
    }
    raised, sent = set[object](), Counter[int]()
    while any(waiting.values()):
        ready = [host for host, items in waiting.items() if items and _ready(items[0], waiting, raised, sent)]
        if not ready:
            stuck = next(items[0] for items in waiting.values() if items)
            raise UsageError(
                f"Operation {stuck[0]} of the schedule waits forever; run 'peergrid verify' to see for what."
            )
        host = min(ready, key=lambda h: waiting[h][0][0])
        number, ops = waiting[host][0]
        for other in hosts_of(ops[0]):
            waiting[other].pop(0)
        raised |= {(op.flag, op.value) for op in ops if isinstance(op, SignalOp)}
        sent.update(op.tag for op in ops if isinstance(op, Send))
        sent.subtract(op.tag for op in ops if isinstance(op, Receive))
        yield number, ops


def _called_before(schedule: Schedule) -> Iterator[int]:
    """The semaphores, by number, that are part of the call before them."""
    for number, (before, op) in enumerate(pairwise(schedule.ops), start=1):
        if is_semaphore(before) and is_semaphore(op) and queues_of(before) == queues_of(op):
            yield number


def _when_needed(schedule: Schedule) -> Iterator[tuple[int, Op]]:
    """The operations with each wait for a semaphore moved to where its queue continues, after the operation that sets
    it; else one call could wait for another that is not issued yet.
    """
    late: dict[Queue, list[tuple[int, Op]]] = {}
    for number, op in enumerate(schedule.ops):
        if isinstance(op, SignalWait) and is_semaphore(op):
            late.setdefault(op.queue, []).append((number, op))
            continue
        for queue in queues_of(op):
            yield from late.pop(queue, ())
        yield number, op
    yield from chain.from_iterable(late.values())


def _last(flags: Mapping[tuple[Flag, int], float]) -> dict[tuple[Flag, int], float]:
    """The times at which flags were last set, for the next iteration."""
    highest = dict(sorted(flags, key=lambda key: key[1]))
    return {(flag, 0): flags[flag, value] for flag, value in highest.items()}


def _ready(item: Item, waiting: dict[int, list[Item]], raised: set[object], sent: Mapping[int, int]) -> bool:
    """A test of order: all hosts of an operation have come to it, the flag that it awaits has been raised, the messages
    that it receives have been sent; sent: how many are under way, by tag.
    """
    number, ops = item
    here = all(waiting[host] and waiting[host][0][0] == number for host in hosts_of(ops[0]))
    first = ops[0]
    if isinstance(first, SignalWait) and first.value:  # 0 is the value after an earlier iteration
        return here and (first.flag, first.value) in raised
    return here and all(sent[op.tag] > 0 for op in ops if isinstance(op, Receive))


def _joined(schedule: Schedule, host: int, given: Given) -> Iterator[Item]:
    """The operations of a host in order: neighbouring computations of a pass together, neighbouring stores, and
    neighbouring messages that one queue sends or receives.
    """
    mine = [(number, op) for number, op in _when_needed(schedule) if host in hosts_of(op)]

    def key(numbered: tuple[int, Op]) -> tuple[object, ...]:
        number, op = numbered
        match op:
            case Compute():
                return "compute", op.queue, op.level, op.steps
            case Copy() if given.route(op) == "store":
                return "copy", op.queue, op.source_device, op.slot
            case Send() | Receive():
                return type(op).__name__, op.queue
        return (number,)

    for _, part in groupby(mine, key=key):
        found = list(part)
        yield found[0][0], tuple(op for _, op in found)
