"""Contexts of GPUs retained between runs, so that the set-up of a process on a GPU serves several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from peergrid.runtime.devices import Devices, parse_devices


@contextmanager
def hold(devices: str | Devices = "auto") -> Iterator[Devices]:
    """Hold devices for several runs: `with peergrid.hold("cuda:0,1") as devices:`, and `devices=devices` for each.

    devices: as in `Simulation`. A run takes the context of each of its GPUs, and the last to give it back destroys it;
    retained ones stay until the end of the block, also where it ends in an error. Such blocks may be nested, overlap
    and be shared by threads. Nothing of a run stays: its memory is free and its kernels are unloaded as ever. A
    retained context keeps the memory it takes. Virtual devices have none.
    Raises, where the block begins, UsageError for devices that cannot be read or are not there, DeviceFault where a GPU
    cannot be used, DoesNotFit where it has no memory left for a context.
    """
    found = devices if isinstance(devices, Devices) else parse_devices(str(devices))
    if found.kind == "cpu":
        yield found
        return
    from peergrid.runtime.cuda.device import devices as gpus
    from peergrid.runtime.cuda.device.driver import CudaDriver

    with closing(gpus.Devices(CudaDriver(), found.ordinals)):
        yield found
