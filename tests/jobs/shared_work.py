"""Work for workers of tests: importable in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from peergrid.errors import Unstable
from peergrid.runtime.devices import Devices


@dataclass(frozen=True)
class Squares:
    """Squares of numbers, with the devices that they were found on; how some end otherwise."""

    wrong: int = -1
    fatal: int = -1

    @contextmanager
    def on(self, devices: Devices) -> Iterator[Callable[[int], tuple[int, str]]]:
        def do_piece(number: int) -> tuple[int, str]:
            if number == self.wrong:
                raise Unstable(f"number {number}")
            if number == self.fatal:
                os._exit(7)
            return number * number, str(devices)

        yield do_piece
