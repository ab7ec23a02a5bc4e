"""Bytes that GPUs send and receive over NVLink while a block of code runs, as the hardware counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from peergrid.errors import UsageError
from peergrid.runtime.devices import Devices, devices_of, gpu_count


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of payload over all NVLink lines of a GPU."""

    sent: int
    received: int


@dataclass(slots=True)
class Traffic:
    """The bytes of each GPU ("cuda:0", …), available when the block has ended.

    missing: the reason if nothing is counted, else ''.
    """

    gpus: Mapping[str, Moved] = field(default_factory=dict)
    missing: str = ""


@contextmanager
def traffic(devices: str | Devices = "cuda") -> Iterator[Traffic]:
    """Count the bytes that GPUs send and receive over NVLink, by counters of NVML.

    Use it as `with peergrid.traffic("cuda:0,1") as counted:`, then read `counted.gpus["cuda:0"].sent`. devices: as in
    `Simulation`. NVML counts in KiB, for all processes together, and with a short delay: end the block only when the
    GPUs have finished, as they have at the end of a run.
    Raises UsageError for virtual devices, without GPUs, and if the driver has no such counters.
    """
    if isinstance(devices, str) and devices.startswith("cuda") and not gpu_count():
        raise UsageError(
            "Traffic over NVLink is expected to be counted, but no CUDA device was found here; see 'peergrid machine' "
            "for the reason."
        )
    chosen = devices_of(devices)
    with counted(chosen) as found:
        if found.missing:
            raise UsageError(f"Traffic over NVLink is expected to be counted, but {found.missing}.")
        yield found


@contextmanager
def counted(devices: Devices) -> Iterator[Traffic]:
    """The same if possible; else `missing` has the reason."""
    if devices.kind == "cpu":
        yield Traffic(missing="virtual devices have no such links; name GPUs, as in 'cuda:0,1'")
        return
    from peergrid.machine import nvml
    from peergrid.machine.counters import REFUSED, nvlink_bytes

    with nvml.session() as (management, lack):
        handles = nvml.of_ordinals(management, devices.ordinals)
        before = {name: nvlink_bytes(management, handle) for name, handle in handles.items()}
        if not before or None in before.values():
            yield Traffic(missing=REFUSED if lack is None else f"{lack.what} is missing: {lack.why}")
            return
        found = Traffic()
        yield found
        after = {name: nvlink_bytes(management, handle) for name, handle in handles.items()}
        found.gpus = {
            name: Moved(last[0] - first[0], last[1] - first[1])
            for name, first in before.items()
            if first is not None and (last := after[name]) is not None
        }
