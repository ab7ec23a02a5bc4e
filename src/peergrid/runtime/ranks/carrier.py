"""Messages between queues of GPUs over MPI: a thread that polls, since MPI need not move anything by itself.

A queue packs a message into host memory and says so in a word; the thread sends it, and says when it has left. The
other rank's thread has begun to receive by then, wherever there is a free buffer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from peergrid.runtime.cuda.device.devices import host_words
from peergrid.runtime.cuda.device.processes import Line
from peergrid.runtime.ranks.ranks import Communicator

SOON = 1e-3  # seconds without progress after which the thread rests between two looks
REST = 2e-5  # seconds


class Carrier:
    """Carries lines of messages over a communicator of its own."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm.Dup()

    @contextmanager
    def carry(self, lines: Sequence[Line], enter: Callable[[], None]) -> Iterator[None]:
        """See `Processes.carry`."""
        stop, failed = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                enter()  # MPI may be given addresses of a GPU
                carry_out([Moving(self._comm, line) for line in lines], stop)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=work, name="messages", daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            stop.set()
            raise
        finally:
            thread.join()
        if failed:
            raise failed[0]

    def close(self) -> None:
        self._comm.Free()


def carry_out(lines: Sequence[Moving], stop: threading.Event) -> None:
    """Move messages until all have come to their end, or somebody says stop."""
    moved = time.monotonic()
    while not all(line.done for line in lines):
        if sum(line.advance() for line in lines):
            moved = time.monotonic()
        elif time.monotonic() - moved > SOON:
            if stop.is_set():
                break
            time.sleep(REST)
    for line in lines:
        line.give_up()


class Moving:
    """A line of which messages `ended` to `begun` are on their way."""

    def __init__(self, comm: Communicator, line: Line) -> None:
        from mpi4py import MPI

        self._comm, self._line = comm, line
        self._begun = self._ended = line.first
        self._last = line.first + line.count
        self._queue, self._carrier = host_words(line.queue, 1), host_words(line.carrier, 1)
        self._ahead = 0 if line.sends else len(line.buffers)
        self._buffers = [MPI.buffer.fromaddress(address, count) for address, count in line.buffers]
        self._requests: deque[Any] = deque()

    @property
    def done(self) -> bool:
        return self._ended == self._last

    def advance(self) -> bool:
        """Begin what can begin, end what has come to its end; whether there was any such."""
        before = self._begun + self._ended
        while self._begun < min(self._last, int(self._queue[0]) + self._ahead):
            buffer = self._buffers[(self._begun - self._line.first) % len(self._buffers)]
            move = self._comm.Isend if self._line.sends else self._comm.Irecv
            self._requests.append(move(buffer, self._line.peer, self._line.tag))
            self._begun += 1
        while self._requests and self._requests[0].Test():
            self._requests.popleft()
            self._ended += 1
            self._carrier[0] = self._ended
        return self._begun + self._ended > before

    def give_up(self) -> None:
        """End what is on its way without waiting for it: a run that failed ends its process."""
        for request in self._requests:
            request.Cancel()
        self._requests.clear()
