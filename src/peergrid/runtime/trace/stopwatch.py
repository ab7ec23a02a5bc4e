"""A recorder that measures the operations of queues, for a timeline."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from peergrid.runtime.trace.recorder import Actor, Position, Silent
from peergrid.schedule.ops import DeviceBarrier, Op, Queue, SignalWait, Touching, Wait
from peergrid.schedule.timeline import Span

TIMED = Touching | Wait | SignalWait | DeviceBarrier


@dataclass
class Stopwatch(Silent):
    """Begin and end of each operation of one iteration in its queues. Appending is atomic: no lock is needed."""

    started: dict[tuple[Queue, Position], float] = field(default_factory=dict)
    ended: list[tuple[Queue, Position, float]] = field(default_factory=list)

    def start(self, actor: Actor, position: Position) -> None:
        if isinstance(actor, Queue):
            self.started[actor, position] = time.perf_counter()

    def finish(self, actor: Actor, position: Position, saw: Position | None = None) -> None:
        if isinstance(actor, Queue):
            self.ended.append((actor, position, time.perf_counter()))

    def spans(self, ops: tuple[Op, ...]) -> tuple[Span, ...]:
        """The spans of computations, copies and waits, in seconds from the first of them."""
        found = [
            (position[1], queue, self.started[queue, position], end)
            for queue, position, end in self.ended
            if isinstance(ops[position[1]], TIMED)
        ]
        origin = min((start for _, _, start, _ in found), default=0.0)
        return tuple(Span(number, queue, start - origin, end - origin) for number, queue, start, end in found)
