"""The log of an executor while it runs: beginnings and ends of operations in one total order, with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from peergrid.schedule.build import Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import Queue

Position = tuple[int, int]
"""An operation: the iteration, counted from the first schedule ever carried out, and the index in that iteration's
list.
"""

Actor = Queue | int
"""An actor: a queue, or a host by its number."""

Kind = Literal["issue", "start", "finish"]


class Recorder(Protocol):
    """Callbacks of an executor; each may be called from any thread.

    The calls enclose the operation: `start` comes before any effect of the operation is visible to others, `finish`
    after everything that it awaited has happened and before others see its end.
    """

    def begin(self, schedule: Schedule, times: int) -> int:
        """A schedule is executed `times` times after everything before it; returns the number of its first
        iteration.
        """

    def issue(self, host: int, position: Position) -> None:
        """A host hands an operation to its queues (not called for Sync and HostBarrier)."""

    def start(self, actor: Actor, position: Position) -> None:
        """A queue, or for Sync and HostBarrier a host, begins an operation; at a barrier: arrives."""

    def finish(self, actor: Actor, position: Position, saw: Position | None = None) -> None:
        """The operation ends; at a barrier: the actor leaves.

        saw: for Wait and Sync with an event, the position of the Record that released it, None if the event was never
        recorded; for SignalWait, the position of the SignalOp whose value it found.
        """


class Entry(NamedTuple):
    """One line of the log."""

    kind: Kind
    actor: Actor
    position: Position
    saw: Position | None


class Begin(NamedTuple):
    """The first iteration of a call of `execute`: everything before it is done."""

    iteration: int


@dataclass
class Log:
    """A recorder that keeps everything. Appending to a list is atomic, so that no lock is needed."""

    iterations: list[Schedule] = field(default_factory=list)
    entries: list[Entry | Begin] = field(default_factory=list)

    def begin(self, schedule: Schedule, times: int) -> int:
        first = len(self.iterations)
        self.iterations.extend([schedule] * times)
        self.entries.append(Begin(first))
        return first

    def issue(self, host: int, position: Position) -> None:
        self.entries.append(Entry("issue", host, position, None))

    def start(self, actor: Actor, position: Position) -> None:
        self.entries.append(Entry("start", actor, position, None))

    def finish(self, actor: Actor, position: Position, saw: Position | None = None) -> None:
        self.entries.append(Entry("finish", actor, position, saw))


@dataclass(frozen=True)
class Recorded:
    """The log of a recorded run, and its faults that do not concern memory."""

    log: Log
    faults: tuple[Fault, ...] = ()

    @property
    def operations(self) -> int:
        """The number of ends in the log: of an operation in a queue, or by a host."""
        return sum(isinstance(entry, Entry) and entry.kind == "finish" for entry in self.log.entries)


class Silent:
    """A recorder that keeps nothing."""

    def begin(self, schedule: Schedule, times: int) -> int:
        return 0

    def issue(self, host: int, position: Position) -> None:
        pass

    def start(self, actor: Actor, position: Position) -> None:
        pass

    def finish(self, actor: Actor, position: Position, saw: Position | None = None) -> None:
        pass
