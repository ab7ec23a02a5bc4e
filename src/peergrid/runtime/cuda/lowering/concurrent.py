"""The streams of launches that may run at the same time; a prediction of a run asks here, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from peergrid.schedule.ops import Queue

SIDES = "beside {}", "beside {} too"
"""The names of the streams beside a queue's own."""


class Concurrent(Protocol):
    """A launch; concurrent: whether it may run at the same time as the next one of the pass; waits: whether, then, it
    waits for the one before.
    """

    @property
    def concurrent(self) -> bool: ...
    @property
    def waits(self) -> bool: ...


Some = TypeVar("Some", bound=Concurrent)


def together(launches: Iterable[Some], queue: Queue) -> Iterator[tuple[Some, list[tuple[Queue, Some]]]]:
    """The launches of a pass that stay in its queue, each with those before it that run at the same time and the
    streams of these: one stream and the other, but a launch that waits is in that of the launch before.
    """
    others, place = list[tuple[Queue, Some]](), -1
    for launch in launches:
        if launch.concurrent:
            place += not launch.waits
            name = SIDES[place % len(SIDES)].format(queue.name)
            others.append((Queue(queue.device, name, queue.priority), launch))
        else:
            yield launch, others
            others, place = [], -1
