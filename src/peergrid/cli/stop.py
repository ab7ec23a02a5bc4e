"""Ctrl-C, SIGTERM and SIGHUP ask a run to stop at the next pause; a second one stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class StopRequest:
    """A request to end the run, by a signal."""

    signal_number: int = 0

    def __bool__(self) -> bool:
        return self.signal_number != 0

    @property
    def name(self) -> str:
        return signal.Signals(self.signal_number).name


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """While inside, SIGINT, SIGTERM and SIGHUP only set the request; the second one acts as usual.

    SIGHUP stays ignored where it is, as under nohup.
    """
    request = StopRequest()
    before = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def note(number: int, _frame: FrameType | None) -> None:
        if request:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
        request.signal_number = number

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
