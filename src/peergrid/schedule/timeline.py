"""The times of operations on queues: spans, their Chrome/Perfetto trace, and the exposed communication.

Spans are measured by an executor or predicted; this module only arranges them. Perfetto (https://ui.perfetto.dev) and
chrome://tracing read the result: a process per device, a thread per queue, times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from peergrid.schedule.ops import Compute, Copy, Op, Queue, Receive, Reduce, Send, Transfer, describe

START = '{"traceEvents"'
"""The first characters of a file with a trace."""
VIEWERS = "open it in https://ui.perfetto.dev or chrome://tracing"
"""The programs for such a file, in words."""


@dataclass(frozen=True, slots=True)
class Span:
    """An operation (its number in the schedule) from `start` to `end`, in seconds."""

    op: int
    queue: Queue
    start: float
    end: float


def chrome(ops: Sequence[Op], spans: Iterable[Span], named: str = "", first: int = 0) -> dict[str, Any]:
    """The trace in Chrome's format: a JSON object with `traceEvents`.

    named: a suffix for the names of devices; first: the number of the process of device 0.
    """
    spans = tuple(spans)
    queues = sorted({span.queue for span in spans})
    threads = {queue: number for number, queue in enumerate(queues)}
    events: list[dict[str, Any]] = []
    for device in sorted({queue.device for queue in queues}):
        events.append(_meta("process_name", first + device, 0, f"device {device}{named}"))
    for queue, thread in threads.items():
        events.append(_meta("thread_name", first + queue.device, thread, queue.name))
    ordered = sorted(spans, key=lambda s: s.start)
    events += [_event(ops[span.op], span, first + span.queue.device, threads[span.queue]) for span in ordered]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def exposed_communication(ops: Sequence[Op], spans: Iterable[Span]) -> float:
    """The share of the whole time in which the busiest device computed nothing; 0 if nothing was computed."""
    spans = tuple(spans)
    computing = [span for span in spans if isinstance(ops[span.op], Compute)]
    if not computing:
        return 0.0
    whole = max(span.end for span in spans) - min(span.start for span in spans)
    devices = {span.queue.device for span in computing}
    busy = max(_covered(span for span in computing if span.queue.device == device) for device in devices)
    return max(0.0, 1.0 - busy / whole) if whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds of boundary regions, interiors and copies, each on the device where it takes longest."""

    boundary: float
    interior: float
    exchange: float


def split(ops: Sequence[Op], spans: Iterable[Span]) -> Split:
    """The times of the parts, overlapped or not; fused kernels count as computation."""
    found: dict[str, dict[int, float]] = {"boundary": {}, "interior": {}, "exchange": {}}
    for span in spans:
        op = ops[span.op]
        if isinstance(op, Transfer | Compute | Reduce):
            computed = "boundary" if span.queue.name == "boundary" else "interior"
            part = found["exchange" if isinstance(op, Transfer) else computed]
            part[span.queue.device] = part.get(span.queue.device, 0.0) + span.end - span.start
    return Split(**{name: max(part.values(), default=0.0) for name, part in found.items()})


def _covered(spans: Iterable[Span]) -> float:
    """The time covered by spans, overlaps counted once."""
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda s: s.start):
        total += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total


def _event(op: Op, span: Span, process: int, thread: int) -> dict[str, Any]:
    return {
        "name": _name(op),
        "cat": type(op).__name__.lower(),
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": span.start * 1e6,
        "dur": (span.end - span.start) * 1e6,
        "args": {"op": span.op, "what": describe(op)},
    }


def _name(op: Op) -> str:
    """The name of an operation, short enough for a bar of the timeline."""
    match op:
        case Compute():
            return f"steps {op.level}→{op.level + op.steps}"
        case Reduce():
            return op.reduction
        case Copy() | Send() | Receive():
            return f"{op.field} {op.source_device}→{op.target_device}"
    return type(op).__name__.lower()


def _meta(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
