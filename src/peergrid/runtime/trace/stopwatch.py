"""A recorder that takes the time of what queues do, for the picture of a timeline."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from peergrid.runtime.trace.recorder import Actor, Place, Silent
from peergrid.schedule.ops import Await, DeviceBarrier, Op, Queue, Touching, Wait
from peergrid.schedule.timeline import Span

TIMED = Touching | Wait | Await | DeviceBarrier


@dataclass
class Stopwatch(Silent):
    """Notes when each operation of one turn began and ended in its queues. Appending is atomic: no lock is needed."""

    started: dict[tuple[Queue, Place], float] = field(default_factory=dict)
    ended: list[tuple[Queue, Place, float]] = field(default_factory=list)

    def start(self, actor: Actor, place: Place) -> None:
        if isinstance(actor, Queue):
            self.started[actor, place] = time.perf_counter()

    def finish(self, actor: Actor, place: Place, saw: Place | None = None) -> None:
        if isinstance(actor, Queue):
            self.ended.append((actor, place, time.perf_counter()))

    def spans(self, ops: tuple[Op, ...]) -> tuple[Span, ...]:
        """What computed, copied or waited, in seconds from the first of them."""
        found = [
            (place[1], queue, self.started[queue, place], end)
            for queue, place, end in self.ended
            if isinstance(ops[place[1]], TIMED)
        ]
        origin = min((start for _, _, start, _ in found), default=0.0)
        return tuple(Span(number, queue, start - origin, end - origin) for number, queue, start, end in found)
