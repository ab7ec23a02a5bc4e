"""Ctrl-C, SIGTERM and SIGHUP ask a command to stop where its files are complete; a second one stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class StopRequest:
    """Requests to stop: the number of the last signal, and how many came."""

    signal_number: int = 0
    count: int = 0

    def __bool__(self) -> bool:
        return self.signal_number != 0

    @property
    def hurried(self) -> bool:
        """True if a batch system or a closed terminal asked, which may kill the process soon."""
        return self.signal_number in (signal.SIGTERM, signal.SIGHUP)

    @property
    def name(self) -> str:
        return signal.Signals(self.signal_number).name


@contextmanager
def stop_on_signal(noted: int = 1) -> Iterator[StopRequest]:
    """In the block, the first `noted` signals among SIGINT, SIGTERM and SIGHUP only set the request; the next acts as
    usual.

    SIGHUP stays ignored if it was, as under nohup.
    """
    request = StopRequest()
    before = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def note(number: int, _frame: FrameType | None) -> None:
        if request.count >= noted:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
        request.signal_number = number
        request.count += 1

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
