"""The GPUs as the driver, NVML and /sys describe them, and the access of each to the memory of others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.machine import host, nvml
from peergrid.machine.driver import attribute, call, kept_current
from peergrid.machine.model import Gpu, Link, Missing, Peer

PCI_DEVICES = Path("/sys/bus/pci/devices")
ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$")
CHECKED = 1 << 20
PATTERN = 0x5EED0000


def gpus(driver: Any, management: Any) -> tuple[Gpu, ...]:
    """Every GPU the driver shows; `management` is NVML or None."""
    usable = host.usable_cpus()
    return tuple(_gpu(driver, management, index, usable) for index in range(count(driver)))


def readable(driver: Any, management: Any) -> tuple[tuple[Gpu, ...], tuple[Missing, ...]]:
    """The working GPUs, and the errors of the others: a GPU that fails does not hide the rest."""
    usable, found, lost = host.usable_cpus(), [], []
    for index in range(count(driver)):
        try:
            found.append(_gpu(driver, management, index, usable))
        except DeviceFault as fault:
            lost.append(Missing(f"GPU {index}", str(fault).rstrip(".")))
    return tuple(found), tuple(lost)


def count(driver: Any) -> int:
    """Number of GPUs; 0 without a driver."""
    return int(call(driver, "cuDeviceGetCount")) if driver is not None else 0


def links(management: Any, found: tuple[Gpu, ...]) -> tuple[Link, ...]:
    """NVLink lines of all GPUs, gathered by source and far end."""
    by_pci = {gpu.pci: gpu.index for gpu in found}
    return tuple(
        link
        for gpu in found
        for link in nvml.links(management, nvml.handle(management, gpu.pci), gpu.index, gpu.capability, by_pci)
    )


def peers(driver: Any, management: Any, found: tuple[Gpu, ...]) -> tuple[Peer, ...]:
    """For every ordered pair of GPUs the report of the driver, and whether a copy arrives."""
    if len(found) < 2:
        return ()
    with kept_current(driver), _contexts(driver, [gpu.index for gpu in found]) as contexts:
        return tuple(
            _peer(driver, management, contexts, source, target)
            for source in found
            for target in found
            if source.index != target.index
        )


def memory_advice(integrated: bool, host_tables: bool) -> str:
    """Advice on the kind of memory for buffers that this GPU shares with the host or an I/O device."""
    if integrated:
        return (
            "pinned host memory (cuMemHostAlloc): GPU and CPU share one memory, device allocations are cached "
            "by the GPU and not coherent with I/O, and a copy would be wasted"
        )
    if host_tables:
        return "plain host memory for control data, device memory for the grid: the GPU reads the host's pages"
    return "device memory for the grid, pinned host memory for copies: I/O devices see the GPU's latest values"


def _gpu(driver: Any, management: Any, index: int, usable: tuple[int, ...]) -> Gpu:
    device = call(driver, "cuDeviceGet", index)
    pci = nvml.short_pci(_text(call(driver, "cuDeviceGetPCIBusId", 32, device)))
    handle = nvml.handle(management, pci)
    near = nvml.near_cpus(management, handle, max(usable, default=0) + 1) or _local_cpus(pci)
    integrated = bool(attribute(driver, "INTEGRATED", device))
    host_tables = bool(attribute(driver, "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES", device))
    clock, width = (attribute(driver, key, device) for key in ("MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH"))
    major = attribute(driver, "COMPUTE_CAPABILITY_MAJOR", device)
    return Gpu(
        index=index,
        name=_text(call(driver, "cuDeviceGetName", 128, device)),
        uuid=_uuid(call(driver, "cuDeviceGetUuid", device)),
        pci=pci,
        path=_path(pci),
        capability=f"{major}.{attribute(driver, 'COMPUTE_CAPABILITY_MINOR', device)}",
        multiprocessors=attribute(driver, "MULTIPROCESSOR_COUNT", device),
        memory=int(call(driver, "cuDeviceTotalMem", device)),
        memory_rate=2.0 * clock * 1e3 * width / 8,
        l2=attribute(driver, "L2_CACHE_SIZE", device),
        clock=attribute(driver, "CLOCK_RATE", device) * 1e3,
        copy_engines=attribute(driver, "ASYNC_ENGINE_COUNT", device),
        integrated=integrated,
        numa=_numa(pci),
        near_cpus=near,
        bound=bool(near) and set(usable) <= set(near),
        pcie=nvml.pcie(management, handle),
        advice=memory_advice(integrated, host_tables),
        flush=_flush(driver, device),
    )


def _flush(driver: Any, device: Any) -> str:
    """The driver's options to flush writes by an I/O device, against stale data (CUDA's flush options)."""
    options = attribute(driver, "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", device)
    ordering = attribute(driver, "GPU_DIRECT_RDMA_WRITES_ORDERING", device)
    calls = [name for bit, name in ((1, "host call"), (2, "stream operation")) if options & bit]
    seen = {0: "needs a flush", 100: "seen by the owner without a flush", 200: "seen by all without a flush"}
    return f"writes from outside: {seen.get(ordering, 'unknown')}; flush by {' or '.join(calls) or 'nothing'}"


def _peer(driver: Any, management: Any, contexts: dict[int, Any], source: Gpu, target: Gpu) -> Peer:
    i, j = source.index, target.index
    access = bool(call(driver, "cuDeviceCanAccessPeer", i, j))
    return Peer(
        source=i,
        target=j,
        access=access,
        atomics=bool(_p2p(driver, "NATIVE_ATOMIC_SUPPORTED", i, j)),
        rank=_p2p(driver, "PERFORMANCE_RANK", i, j),
        nearest=nvml.nearest(management, nvml.handle(management, source.pci), nvml.handle(management, target.pci)),
        arrives=_arrives(driver, contexts[i], contexts[j], PATTERN | i << 8 | j) if access else None,
    )


def _p2p(driver: Any, name: str, source: int, target: int) -> int:
    key = getattr(driver.CUdevice_P2PAttribute, f"CU_DEVICE_P2P_ATTRIBUTE_{name}", None)
    return int(call(driver, "cuDeviceGetP2PAttribute", key, source, target)) if key is not None else 0


@contextmanager
def _contexts(driver: Any, numbers: Sequence[int]) -> Iterator[dict[int, Any]]:
    """The primary contexts of these GPUs, released at the end."""
    contexts: dict[int, Any] = {}
    try:
        for device in numbers:
            contexts[device] = call(driver, "cuDevicePrimaryCtxRetain", device)
        yield contexts
    finally:
        for device in contexts:
            driver.cuDevicePrimaryCtxRelease(device)


def _arrives(driver: Any, source: Any, target: Any, pattern: int) -> bool | None:
    """Write a pattern on one GPU, copy it to the other with peer access on, and read it back there."""
    try:
        return _copied(driver, source, target, pattern)
    except DeviceFault:
        return None


def _copied(driver: Any, source: Any, target: Any, pattern: int) -> bool:
    words = CHECKED // 4
    call(driver, "cuCtxSetCurrent", target)
    there = call(driver, "cuMemAlloc", CHECKED)
    call(driver, "cuMemsetD32", there, ~pattern & 0xFFFFFFFF, words)
    call(driver, "cuCtxSynchronize")
    call(driver, "cuCtxSetCurrent", source)
    driver.cuCtxEnablePeerAccess(target, 0)  # "already enabled" is no error
    here = call(driver, "cuMemAlloc", CHECKED)
    call(driver, "cuMemsetD32", here, pattern, words)
    call(driver, "cuMemcpyAsync", there, here, CHECKED, 0)
    call(driver, "cuCtxSynchronize")
    received = np.empty(words, np.uint32)
    call(driver, "cuCtxSetCurrent", target)
    call(driver, "cuMemcpyDtoH", received.ctypes.data, there, CHECKED)
    call(driver, "cuMemFree", there)
    call(driver, "cuCtxSetCurrent", source)
    call(driver, "cuMemFree", here)
    driver.cuCtxDisablePeerAccess(target)
    return bool(np.all(received == pattern))


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode()


def _uuid(raw: Any) -> str:
    digits = bytes(raw.bytes).hex()
    cuts = (0, 8, 12, 16, 20, 32)
    return "GPU-" + "-".join(digits[a:b] for a, b in pairwise(cuts))


def _path(pci: str) -> tuple[str, ...]:
    """PCI addresses from the root port down to the device, as /sys nests them."""
    place = PCI_DEVICES / pci
    if not place.exists():
        return (pci,)
    return tuple(part for part in place.resolve().parts if ADDRESS.match(part)) or (pci,)


def _numa(pci: str) -> int | None:
    text = host.read(PCI_DEVICES / pci / "numa_node", "-1")
    return int(text) if text.isdigit() else None


def _local_cpus(pci: str) -> tuple[int, ...]:
    return host.cpu_list(host.read(PCI_DEVICES / pci / "local_cpulist"))
