"""Memory of neighbours in other processes of the host, as this process addresses it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from peergrid.runtime.cuda.device.devices import Devices
from peergrid.schedule import Layout

APART = 2 << 20  # bytes in whose multiples the driver exports memory: what is smaller would bring its neighbours along
Name = TypeVar("Name", bound=Hashable)
"""The identification of an allocation among those of a device."""


class Sharing:
    """The allocations of all devices that exchange with those of this process."""

    def __init__(self, devices: Devices, layout: Layout) -> None:
        self._devices, self._viewer = devices, viewers(layout, devices.mine)

    def allocate(self, device: int, count: int) -> int:
        """Device memory that may be exported."""
        return self._devices.allocate(device, count if self._devices.processes is None else -(-count // APART) * APART)

    def addresses(self, own: Mapping[tuple[int, Name], int]) -> dict[tuple[int, Name], int]:
        """The addresses, by device and name, of what all processes allocated, if devices here exchange with it; own:
        those of this process's.
        """
        devices, found = self._devices, dict(own)
        if devices.processes is None or not devices.processes.by_address:
            return found
        handles: dict[tuple[int, Name], bytes] = {}
        for place, address in own.items():
            handles[place] = devices.on(place[0]).export_memory(address)
        for place, handle in devices.of_all(handles).items():
            if place not in found and place[0] in self._viewer:
                found[place] = devices.opened(self._viewer[place[0]], handle)
        return found


def viewers(layout: Layout, mine: tuple[int, ...]) -> dict[int, int]:
    """The device here that exchanges with each device elsewhere; the first, if there are several."""
    pairs = {(halo.source, halo.target) for halo in layout.halos} | {(h.target, h.source) for h in layout.halos}
    return {other: here for here, other in sorted(pairs, reverse=True) if here in mine and other not in mine}
