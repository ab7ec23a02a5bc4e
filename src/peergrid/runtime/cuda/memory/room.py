"""Does it fit on the GPUs: the bytes that devices need against what is free, before anything is allocated; and what
kernels are fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence

from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.errors import DoesNotFit, PeergridError
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.driver import CudaDriver, Driver

SPARE = 64 << 20  # bytes a device keeps free for the driver


def gpu_model(ordinals: tuple[int, ...], driver: Driver | None = None) -> GpuModel:
    """The model of the GPU for kernels of all of these: the least that any of them gives.

    The usual one where the GPUs cannot be asked: the run says why.
    """
    try:
        found = driver or CudaDriver()
        return min((found.model(ordinal) for ordinal in ordinals), key=lambda gpu: gpu.block_shared)
    except PeergridError:
        return H200


def multiprocessors(ordinals: tuple[int, ...], driver: Driver) -> tuple[int, ...]:
    """Multiprocessors of each device; those that share a GPU share them."""
    return tuple(driver.model(ordinal).multiprocessors // ordinals.count(ordinal) for ordinal in ordinals)


def check_room(devices: Devices, needed: Sequence[int], cells: int) -> None:
    """Raise DoesNotFit, with what would fit, where a GPU has not enough memory free.

    needed: bytes of each device; cells: of the whole grid.
    """
    per_gpu: dict[int, int] = {}
    for ordinal, count in zip(devices.ordinals, needed, strict=True):
        per_gpu[ordinal] = per_gpu.get(ordinal, 0) + count
    for ordinal, count in per_gpu.items():
        devices.enter(devices.ordinals.index(ordinal))
        free = max(0, devices.driver.memory()[0] - SPARE)
        if count > free:
            raise DoesNotFit(
                f"The run needs {count / 2**30:.2f} GiB on GPU {ordinal}, which has {free / 2**30:.2f} GiB free: "
                f"about {int(cells * free / count):,} of the {cells:,} cells would fit; use a smaller grid or "
                f"about {-(-sum(needed) // max(free, 1))} such GPUs."
            )


def check_least(ordinals: tuple[int, ...], needed: int, cells: int, driver: Driver | None = None) -> None:
    """Raise DoesNotFit where GPUs have less free than their equal shares of so many bytes."""
    devices = Devices(driver or CudaDriver(), ordinals)
    try:
        check_room(devices, [needed // devices.count] * devices.count, cells)
    finally:
        devices.close()
