"""Virtual memory management: physical memory of chosen GPUs mapped into one range, access granted GPU by GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.experiment import Impossible


def properties(driver: Any, device: int) -> Any:
    """The properties of plain device memory on one GPU."""
    found = driver.CUmemAllocationProp()
    found.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    found.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    found.location.id = device
    return found


def access(driver: Any, device: int) -> Any:
    """The right of one GPU to read and write."""
    found = driver.CUmemAccessDesc()
    found.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    found.location.id = device
    found.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return found


def granularity(devices: Gpus, device: int) -> int:
    """The size that every piece must be a multiple of."""
    kind = devices.driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(devices.call("cuMemGetAllocationGranularity", properties(devices.driver, device), kind))


def over_all(devices: Gpus) -> int:
    """The size that every piece of one range over all GPUs must be a multiple of.

    Raises:
        Impossible: there can be no such range.
    """
    everyone = range(len(devices))
    if not devices.attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
        raise Impossible("the driver has no virtual memory management on these GPUs")
    if len(devices.pairs()) < len(devices) * (len(devices) - 1):
        raise Impossible("not every GPU can reach every other, so one range cannot serve all")
    devices.use(0)
    return max(granularity(devices, device) for device in everyone)


@contextmanager
def mapped(devices: Gpus, owners: Sequence[int], each: int, readers: Sequence[int]) -> Iterator[int]:
    """One contiguous range, `each` bytes of it on one owner after another, open to all readers; its address.

    Unmapped and released at the end in the order the driver asks for: unmap, release, free the range.
    """
    with ExitStack() as stack:
        total = each * len(owners)
        base = int(devices.call("cuMemAddressReserve", total, 0, 0, 0))
        stack.callback(devices.driver.cuMemAddressFree, base, total)
        for at, owner in enumerate(owners):
            handle = devices.call("cuMemCreate", each, properties(devices.driver, owner), 0)
            stack.callback(devices.driver.cuMemRelease, handle)
            devices.call("cuMemMap", base + at * each, each, 0, handle, 0)
            stack.callback(devices.driver.cuMemUnmap, base + at * each, each)
        grant(devices, base, total, readers)
        yield base


def grant(devices: Gpus, base: int, size: int, readers: Sequence[int]) -> None:
    """Open a mapped range to more GPUs; those that may see it already keep their right."""
    if readers:
        rights = [access(devices.driver, reader) for reader in readers]
        devices.call("cuMemSetAccess", base, size, rights, len(rights))
