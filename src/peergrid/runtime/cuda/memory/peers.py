"""The memory that each device reaches: peer access granted where a schedule needs it, and verified by data once."""

from __future__ import annotations

import numpy as np

from peergrid.errors import PeergridError
from peergrid.runtime.cuda.commands.buffer import ARGUMENTS
from peergrid.runtime.cuda.device.devices import Devices

PROBE_WORDS = 1024


class Peers:
    """The pairs of devices that address each other, once somebody asks. `notes` says which do not, and why."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.notes: list[str] = []
        self._asked: set[tuple[int, int]] = set()
        self._granted: set[tuple[int, int]] = set()

    def reaches(self, source: int, target: int) -> bool:
        """True where kernels of one device may load from and store into the memory of the other."""
        processes = self.devices.processes
        if processes is not None and not {source, target} <= {*self.devices.mine}:
            return processes.by_address or processes.of_device[source] == processes.of_device[target]
        for one, two in sorted(((source, target), (target, source))):
            self._ask(one, two)
        ends = self.devices.ordinals[source], self.devices.ordinals[target]
        return ends[0] == ends[1] or ends in self._granted

    def _ask(self, source: int, target: int) -> None:
        ends = self.devices.ordinals[source], self.devices.ordinals[target]
        if ends[0] != ends[1] and ends not in self._asked:
            self._asked.add(ends)
            self._grant(*ends, source, target)

    def _grant(self, ordinal: int, peer: int, source: int, target: int) -> None:
        if not self.devices.driver.reaches(ordinal, peer):
            self.notes.append(f"GPU {ordinal} cannot reach the memory of GPU {peer}: halos go through host memory")
            return
        try:
            self.devices.driver.enable_peer(self.devices.context(source), self.devices.context(target))
        except PeergridError as error:
            self.notes.append(f"GPU {ordinal} was refused access to GPU {peer}: {error}")
            return
        if _carries(self.devices, source, target):
            self._granted.add((ordinal, peer))
        else:
            self.notes.append(f"copies from GPU {ordinal} to GPU {peer} arrive changed: halos go through host memory")


def _carries(devices: Devices, source: int, target: int) -> bool:
    """True where a pattern copied from one device to the other arrives as it was."""
    from peergrid.runtime.cuda.commands.replay import invoke  # takes a compiler along, which is slow to come

    pattern = np.random.default_rng(source * 1000 + target).integers(0, 1 << 62, PROBE_WORDS)
    arrived = np.zeros_like(pattern)
    there, here = (devices.allocate(device, pattern.nbytes) for device in (target, source))
    devices.on(source).upload(here, pattern)
    devices.on(target).upload(there, arrived)
    words = (there, here, pattern.nbytes, 0)
    driver = devices.on(source)
    code = invoke(driver.entry("cuMemcpyAsync"), words + (0,) * (ARGUMENTS - len(words)))
    driver.synchronize()
    driver = devices.on(target)
    driver.synchronize()
    driver.download(arrived, there)
    return code == 0 and bool((arrived == pattern).all())
