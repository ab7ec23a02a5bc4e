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
from dataclasses import replace
from typing import Any

from peergrid.runtime.cuda.device.devices import host_words
from peergrid.runtime.cuda.device.processes import Line
from peergrid.runtime.ranks.ranks import Communicator, Ranks

SOON = 1e-3  # seconds without progress after which the thread rests between two looks
REST = 2e-5  # seconds


class Carrier:
    """Carries lines of messages over a communicator of its own; direct: from GPU memory to GPU memory."""

    def __init__(self, ranks: Ranks, direct: bool) -> None:
        self._ranks, self._comm, self._direct = ranks, ranks.another(), direct
        self._met: set[tuple[tuple[int, int], ...]] = set()

    @contextmanager
    def carry(self, lines: Sequence[Line], enter: Callable[[], object]) -> Iterator[None]:
        """See `Processes.carry`."""
        if self._direct:
            enter()
            self._meet([line for line in lines if line.buffers not in self._met])
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

    def _meet(self, lines: Sequence[Line]) -> None:
        """Fill all buffers once while no queue waits for any: MPI opens the memory of other GPUs when it first sees it,
        which takes until their queues are empty.
        """
        moving = [Moving(self._comm, replace(line, first=0, count=len(line.buffers))) for line in lines]
        for request in [request for line in moving for request in line.begin_all()]:
            self._ranks.finish(request)
        self._met |= {line.buffers for line in lines}


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
            self._requests.append(self._begin((self._begun - self._line.first) % len(self._buffers)))
            self._begun += 1
        while self._requests and self._requests[0].Test():
            self._requests.popleft()
            self._ended += 1
            self._carrier[0] = self._ended
        return self._begun + self._ended > before

    def begin_all(self) -> list[Any]:
        """The requests of one message for each buffer."""
        return [self._begin(place) for place in range(len(self._buffers))]

    def _begin(self, place: int) -> Any:
        move = self._comm.Isend if self._line.sends else self._comm.Irecv
        return move(self._buffers[place], self._line.peer, self._line.tag)

    def give_up(self) -> None:
        """End what is on its way without waiting for it: a run that failed ends its process."""
        for request in self._requests:
            request.Cancel()
        self._requests.clear()
