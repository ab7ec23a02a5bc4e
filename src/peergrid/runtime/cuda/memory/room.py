"""Does it fit on the GPUs: the bytes that devices need against what is free, before anything is allocated; and what
kernels are chosen for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.errors import DoesNotFit, PeergridError
from peergrid.runtime.cuda.device.devices import Devices, borrowed
from peergrid.runtime.cuda.device.driver import CudaDriver

SPARE = 64 << 20  # bytes a device keeps free for the driver
PAGE = 2 << 20  # bytes: large arrays lie in pages of their own
SMALL = 1 << 20  # bytes of an array that shares a page with others
KERNELS = 4 << 20  # bytes of kernels, tables of tiles, counters


def gpu_model(ordinals: tuple[int, ...], driver: CudaDriver | None = None) -> GpuModel:
    """The model of the GPU for kernels of all of these: the least that any of them gives.

    The usual one where the GPUs cannot be asked: the run says why. Those of other hosts are alike.
    """
    try:
        found = driver or CudaDriver()
        present = found.device_count()
        models = [found.model(ordinal) for ordinal in ordinals if ordinal < present or len(ordinals) == 1]
        return min(models, key=lambda gpu: gpu.block_shared, default=H200)
    except PeergridError:
        return H200


def multiprocessors(ordinals: tuple[int, ...], driver: CudaDriver, mine: Sequence[int] = ()) -> tuple[int, ...]:
    """Multiprocessors of each device; those that share a GPU share them.

    mine: the devices of this process, if others, which are alike, belong to others.
    """
    asked = [ordinal if device in mine or not mine else ordinals[mine[0]] for device, ordinal in enumerate(ordinals)]
    return tuple(driver.model(gpu).multiprocessors // ordinals.count(n) for gpu, n in zip(asked, ordinals, strict=True))


def in_pages(arrays: Iterable[int]) -> int:
    """Bytes that a GPU has less, as its driver reports, while arrays of so many bytes and kernels are in it."""
    listed = list(arrays)
    pages = sum(-(-count // PAGE) for count in listed if count > SMALL)
    small = sum(count for count in listed if count <= SMALL)
    return (pages + -(-small // PAGE)) * PAGE + KERNELS


def check_room(
    devices: Devices, needed: Sequence[int], cells: int, gpus: Callable[[int], int | None] | None = None
) -> None:
    """Raise DoesNotFit, with what would fit, where a GPU has not enough memory free.

    needed: bytes of each device; cells: of the whole grid; gpus: how many with so many bytes free it takes (None: more
    than there are), if that is known better than by division.
    """
    per_gpu: dict[int, int] = {}
    for device in devices.mine:
        ordinal = devices.ordinals[device]
        per_gpu[ordinal] = per_gpu.get(ordinal, 0) + needed[device]
    for ordinal, count in per_gpu.items():
        here = next(device for device in devices.mine if devices.ordinals[device] == ordinal)
        free = max(0, devices.on(here).memory()[0] - SPARE)
        if count > free:
            enough = gpus(free) if gpus else -(-sum(needed) // max(free, 1))
            raise DoesNotFit(
                f"The run needs {count / 2**30:.2f} GiB on GPU {ordinal}, which has {free / 2**30:.2f} GiB free: "
                f"about {int(cells * free / count):,} of the {cells:,} cells would fit; use a smaller grid"
                f"{f' or {enough} such GPUs' if enough else ''}."
            )


def check_least(ordinals: tuple[int, ...], needed: int, cells: int, driver: CudaDriver | None = None) -> None:
    """Raise DoesNotFit where GPUs have less free than their equal shares of so many bytes."""
    with borrowed(ordinals, driver) as devices:
        check_room(devices, [needed // devices.count] * devices.count, cells)
