"""Messages between devices of different ranks, for an executor of virtual devices."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol

from peergrid.grid import Array
from peergrid.runtime.trace.recorder import Position
from peergrid.schedule.ops import IN_FLIGHT, Receive, Send

Letter = tuple[Array, Position | None]
"""The values of a message, and where it was sent, if that was in this process."""


class Mail(Protocol):
    """Calls do not wait: a caller that cannot continue calls again. Several threads may call, one at a time for each
    tag.
    """

    def sent(self, op: Send, values: Array, position: Position) -> bool:
        """Send a message, with a copy of the values; False while too many of its tag are on their way."""

    def arrived(self, op: Receive) -> Letter | None:
        """The next message of a tag once it has arrived; its values may be overwritten by the next call for the tag."""

    def close(self) -> None:
        """Stop waiting for messages."""


class LocalMail:
    """Messages within a process that runs the schedules of several ranks, for tests."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[Letter]] = {}
        self._lock = threading.Lock()

    def sent(self, op: Send, values: Array, position: Position) -> bool:
        with self._lock:
            line = self._lines.setdefault(op.tag, deque())
            if len(line) == IN_FLIGHT:
                return False
            line.append((values.copy(), position))
            return True

    def arrived(self, op: Receive) -> Letter | None:
        with self._lock:
            line = self._lines.get(op.tag)
            return line.popleft() if line else None

    def close(self) -> None:
        """Nothing to do."""
