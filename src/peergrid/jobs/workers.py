"""Work shared among groups of devices, with a process for each group; a free process takes the next piece.

With one group the work is done in this process. A worker ends with the process that started it, when it asks for its
next piece of work. Signals that end a run are handled by the parent, which starts no more work and waits.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from peergrid.errors import DeviceFault, PeergridError
from peergrid.runtime.devices import Devices

FOUND = TypeVar("FOUND", covariant=True)
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDING = 5.0  # seconds that a worker gets to end by itself


class Work(Protocol[FOUND]):
    """Work that can be sent to a process."""

    def on(self, devices: Devices) -> AbstractContextManager[Callable[[int], FOUND]]:
        """A function that does a piece of work, by its number, on some devices; valid in the block."""


def share_out(
    work: Work[FOUND], pieces: Sequence[int], groups: Sequence[Devices], stopped: Callable[[], bool]
) -> Iterator[tuple[int, FOUND]]:
    """Do pieces of work; yields their numbers and results in the order in which they end. No more are begun once
    `stopped` returns true.

    Raises the first error of a piece of work, DeviceFault if a worker ends.
    """
    if len(groups) == 1:
        with work.on(groups[0]) as do_piece:
            for piece in pieces:
                if stopped():
                    return
                yield piece, do_piece(piece)
        return
    with _workers(work, groups[: len(pieces)]) as processes:
        yield from _handed_out(processes, list(pieces), stopped)


def _handed_out(
    processes: dict[Connection, BaseProcess], left: list[int], stopped: Callable[[], bool]
) -> Iterator[tuple[int, Any]]:
    left.reverse()
    busy = set(processes)
    while busy:
        for connection in wait(list(busy)):
            assert isinstance(connection, Connection)
            answer = _answer(connection, processes[connection])
            if left and not stopped():
                connection.send(left.pop())
            else:
                busy.remove(connection)
            if answer is not None:
                yield answer


def _answer(connection: Connection, process: BaseProcess) -> tuple[int, Any] | None:
    """The number and the result of a piece of work; None from a worker that is ready for its first."""
    try:
        found = connection.recv()
    except (EOFError, ConnectionError):
        process.join(ENDING)
        raise DeviceFault(
            f"Worker '{process.name}' is expected to run until the survey is done, but ended with code "
            f"{process.exitcode}; continue with '--resume'."
        ) from None
    if isinstance(found, PeergridError):
        raise found
    if isinstance(found, str):
        raise RuntimeError(found)
    answer: tuple[int, Any] | None = found
    return answer


@contextmanager
def _workers(work: Work[object], groups: Sequence[Devices]) -> Iterator[dict[Connection, BaseProcess]]:
    context = multiprocessing.get_context("spawn")  # a process that has used a GPU cannot be forked
    started: dict[Connection, BaseProcess] = {}
    try:
        for devices in groups:
            ours, theirs = context.Pipe()
            process: BaseProcess = context.Process(
                target=_serve, args=(theirs, work, devices), name=str(devices), daemon=True
            )
            with _unheard():
                process.start()
            theirs.close()
            started[ours] = process
        yield started
        for connection in started:
            connection.send(None)
        for process in started.values():
            process.join(ENDING)
    finally:
        for connection, process in started.items():
            connection.close()
            process.kill()  # if it has not ended; it ignores other signals
            process.join()


@contextmanager
def _unheard() -> Iterator[None]:
    """Ignore the signals that end a run in the block, so that processes started there ignore them from the
    beginning.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(connection: Connection, work: Work[object], devices: Devices) -> None:
    """The main loop of a worker."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    try:
        with work.on(devices) as do_piece:
            connection.send(None)
            while (piece := connection.recv()) is not None:
                connection.send((piece, do_piece(piece)))
    except (EOFError, ConnectionError):
        return
    except PeergridError as error:
        connection.send(error)
    except Exception:
        connection.send(traceback.format_exc())
