"""One range of addresses over the memory of several devices, by virtual memory management."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from peergrid.errors import UsageError
from peergrid.runtime.cuda.device.devices import Devices

Span = tuple[int, int]
"""Bytes of a range, from and to."""


@dataclass(frozen=True)
class OneRange:
    """Addresses from `address` on; parts: the bytes that lie in the memory of each device, whole pages, maybe none."""

    devices: Devices
    address: int
    parts: tuple[Span, ...]

    @classmethod
    def over(cls, devices: Devices, sizes: Sequence[int]) -> OneRange:
        """A range of `sizes[d]` bytes of each device after another; a page is where its first byte belongs.

        Nobody may read or write it until `grant` says so; it is given back with the devices. Raises UsageError where
        GPUs do not reach each other, DeviceFault and DoesNotFit as allocations do.
        """
        _require_links(devices)
        driver = devices.driver
        page = max(driver.granularity(ordinal) for ordinal in devices.ordinals)
        ends = [-(-end // page) * page for end in accumulate(sizes, initial=0)]
        address = devices.on(0).reserve(ends[-1])
        devices.on_close(0, driver.unreserve, address, ends[-1])
        for device, (lo, hi) in enumerate(pairwise(ends)):
            if lo < hi:
                devices.on(device).map_memory(address + lo, hi - lo, devices.ordinals[device])
                devices.on_close(device, driver.unmap, address + lo, hi - lo)
        return cls(devices, address, tuple(pairwise(ends)))

    def grant(self, spans: Sequence[Span]) -> None:
        """Let each device read and write its own part, and those of the others that hold some of its span."""
        for owner, (lo, hi) in enumerate(self.parts):
            may = {d for d, (first, last) in enumerate(spans) if d == owner or (first < hi and lo < last)}
            if lo < hi:
                ordinals = sorted({self.devices.ordinals[device] for device in may})
                self.devices.on(owner).grant(self.address + lo, hi - lo, ordinals)

    def upload(self, values: np.ndarray[Any, Any]) -> None:
        """Fill the range from its beginning."""
        for device, (lo, hi) in enumerate(self.parts):
            self.devices.on(device).upload(self.address + lo, values[lo // values.itemsize : hi // values.itemsize])

    def download(self, values: np.ndarray[Any, Any]) -> None:
        """Fill a C-contiguous array from the range's beginning."""
        for device, (lo, hi) in enumerate(self.parts):
            self.devices.on(device).download(values[lo // values.itemsize : hi // values.itemsize], self.address + lo)


def _require_links(devices: Devices) -> None:
    for one in devices.ordinals:
        for other in devices.ordinals:
            if not devices.driver.reaches(one, other):
                raise UsageError(
                    f"One range of addresses needs GPUs that reach each other's memory; GPU {one} does not reach "
                    f"GPU {other}: let each have a copy instead."
                )
