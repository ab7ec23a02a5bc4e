"""Words of pinned host memory: queues of all GPUs write and await them, the host reads and writes them at any time."""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.runtime.cuda.device.devices import Devices, host_words
from peergrid.schedule.ops import Flag

LINE = 16  # words from one flag's to the next, so that no two share a cache line
FLAGS = 64  # of a block
FAR = 1 << 62  # beyond what any flag counts to


class HostWords:
    """A word for each flag, zero at first."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._places: dict[Flag, int] = {}
        self._blocks: list[int] = []

    def address(self, flag: Flag) -> int:
        """Where the word of a flag lies, the same for all devices."""
        place = self._places.setdefault(flag, len(self._places))
        if place == FLAGS * len(self._blocks):
            self._blocks.append(self._devices.allocate_host(8 * LINE * FLAGS))
            self._words(-1)[:] = 0
        return self._blocks[place // FLAGS] + 8 * LINE * (place % FLAGS)

    def value(self, flag: Flag) -> int:
        """How far a flag is."""
        place = self._places[flag]
        return int(self._words(place // FLAGS)[LINE * (place % FLAGS)])

    def release(self) -> None:
        """Let go whoever waits: nobody will raise the flags any more."""
        for number in range(len(self._blocks)):
            self._words(number)[:] = FAR

    def _words(self, block: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return host_words(self._blocks[block], LINE * FLAGS)
