"""Words that count how far something is, one for each flag: in memory of a device or, pinned, of the host.

Those in host memory are written and awaited by queues of all GPUs, and by the host at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from peergrid.runtime.cuda.commands.buffer import LINE
from peergrid.runtime.cuda.device.devices import Devices, host_words
from peergrid.runtime.cuda.memory.sharing import Sharing
from peergrid.schedule.ops import Flag

FLAGS = 64  # of a block
BLOCK = 8 * LINE * FLAGS  # bytes
FAR = 1 << 62  # beyond what any flag counts to


class FlagWords:
    """A word for each flag, zero at first; allocate: takes so many bytes and returns their address."""

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate
        self._places: dict[Flag, int] = {}
        self._blocks: list[int] = []

    def address(self, flag: Flag) -> int:
        """The place of the word of a flag, the same for all devices."""
        place = self._places.setdefault(flag, len(self._places))
        if place == FLAGS * len(self._blocks):
            self._blocks.append(self._allocate(BLOCK))
        return self._blocks[place // FLAGS] + 8 * LINE * (place % FLAGS)

    def __contains__(self, flag: Flag) -> bool:
        return flag in self._places


class DeviceWords(FlagWords):
    """In a device's memory; sharing: with which devices of other processes, if with any."""

    def __init__(self, devices: Devices, device: int, sharing: Sharing | None = None) -> None:
        def zeroed(count: int) -> int:
            place, own = (device, len(self._blocks)), dict[tuple[int, int], int]()
            if device in devices.mine:
                block = devices.allocate(device, count) if sharing is None else sharing.allocate(device, count)
                devices.driver.fill(block, 0, count // 4)
                own[place] = block
            return (own if sharing is None else sharing.addresses(own)).get(place, 0)

        super().__init__(zeroed)


class HostWords(FlagWords):
    """In pinned memory of the host; shared: that of all its processes."""

    def __init__(self, devices: Devices, *, shared: bool = True) -> None:
        super().__init__(devices.shared_host if shared else devices.zeroed_host)

    def value(self, flag: Flag) -> int:
        """The value of a flag."""
        place = self._places[flag]
        return int(self._words(self._blocks[place // FLAGS])[LINE * (place % FLAGS)])

    def release(self) -> None:
        """Let go whoever waits: nobody will raise the flags any more."""
        for block in self._blocks:
            self._words(block)[:] = FAR

    @staticmethod
    def _words(block: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return host_words(block, LINE * FLAGS)
