"""One address space: does the driver know who owns a pointer? And what does the default stream wait for?"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from peergrid.probe.cuda.devices import Gpus, Scope, Stream, u64
from peergrid.probe.cuda.hostloop import library
from peergrid.probe.cuda.vmm import granularity, mapped
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

HOST_MEMORY, DEVICE_MEMORY = 1, 2  # CUmemorytype
ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
LEGACY, PER_THREAD = 1, 2  # the driver's handles of the two default streams
BLOCKING, INDEPENDENT = 0, 1  # flags of cuStreamCreate
PAUSE_SECONDS = 0.005


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Owners of all kinds of memory, asked from the context of GPU 0; then the order of default streams."""
    devices: Gpus = bench.devices
    devices.use(0)
    if devices.attribute("UNIFIED_ADDRESSING"):
        yield from _owners(devices)
    else:
        yield Lack("owners of pointers: these GPUs have address spaces of their own")
    yield from _orders(devices)


def _owners(devices: Gpus) -> Iterator[Measurement]:
    """1 where the driver names the owner, 0 where it does not."""
    last = len(devices) - 1
    with devices.scope() as scope:
        known = {"own GPU": _owner(devices, scope.memory(0, 4096)) == (DEVICE_MEMORY, 0)}
        if last:
            known["another GPU"] = _owner(devices, scope.memory(last, 4096)) == (DEVICE_MEMORY, last)
        known["pinned host memory"] = _owner(devices, scope.pinned(4096).address)[0] == HOST_MEMORY
        plain = np.ones(4096, np.uint8)
        known["plain host memory"] = _owner(devices, plain.ctypes.data)[0] == HOST_MEMORY
        if devices.attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
            devices.use(0)
            each = max(granularity(devices, device) for device in {0, last})
            with mapped(devices, [0, last], each, [0]) as base:
                known["mapped range"] = _owner(devices, base + each) == (DEVICE_MEMORY, last)
    for memory, right in known.items():
        yield result("owner_known", "", [float(right)], {"memory": memory}, floor=0.0)


def _owner(devices: Gpus, address: int) -> tuple[int, int]:
    """The kind of memory at an address, and its GPU; (0, -1) where the driver knows nothing of it."""
    devices.use(0)
    key = devices.driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    code, *found = devices.driver.cuPointerGetAttribute(key, address)
    return (0, -1) if int(code) else (int(found[0]), _ordinal(address))


def _ordinal(address: int) -> int:
    """The GPU of an address, from the library: some releases of cuda-bindings say 0 (NVIDIA/cuda-python#2928)."""
    found = ctypes.c_int(-1)
    code = library().cuPointerGetAttribute(ctypes.byref(found), ORDINAL, ctypes.c_uint64(address))
    return -1 if code else found.value


def _orders(devices: Gpus) -> Iterator[Measurement]:
    """1 where work put into the one stream later waits for work that is kept waiting in the other."""
    with devices.scope() as scope:
        blocking, independent = (_stream(scope, flags) for flags in (BLOCKING, INDEPENDENT))
        legacy, own = Stream(0, LEGACY), Stream(0, PER_THREAD)
        cases = {
            ("default", "blocking"): (legacy, blocking),
            ("default", "non-blocking"): (legacy, independent),
            ("default of the thread", "blocking"): (own, blocking),
            ("blocking", "default"): (blocking, legacy),
            ("non-blocking", "default"): (independent, legacy),
        }
        if len(devices) > 1:
            cases["default of another GPU", "blocking"] = (Stream(1, LEGACY), blocking)
        for (later, earlier), (second, first) in cases.items():
            waits = _waits(scope, second, first)
            yield result("stream_waits", "", [float(waits)], {"stream": later, "for": earlier}, floor=0.0)


def _stream(scope: Scope, flags: int) -> Stream:
    devices = scope.devices
    devices.use(0)
    handle: Any = devices.call("cuStreamCreate", flags)
    scope.stack.callback(devices.driver.cuStreamDestroy, handle)
    return Stream(0, handle)


def _waits(scope: Scope, later: Stream, earlier: Stream) -> bool:
    """True where a kernel in `later` is not done some milliseconds after one in `earlier` that is kept waiting."""
    devices, word, done = scope.devices, scope.pinned(64), scope.event(later.device)
    nothing = devices.kernel(later.device, "launch", "nothing")
    devices.kernel(earlier.device, "launch", "gate")(earlier, 1, 1, u64(word.address))
    nothing(later, 1, 1)
    devices.call("cuEventRecord", done, later.handle)
    time.sleep(PAUSE_SECONDS)
    waits = int(devices.driver.cuEventQuery(done)[0]) != 0
    word.words[0] = 1
    devices.wait(earlier.device)
    devices.wait(later.device)
    return waits


PROBE = Probe(
    name="addressing",
    group="atomics and order",
    rows=("M5",),
    title="Who owns a pointer, and what the default stream waits for",
    unit="",
    method=(
        "cuPointerGetAttribute on memory of every kind, asked from the context of GPU 0. Order: a kernel is held in "
        "one stream by a word of the host, another is put into a second stream; if that one is not done five "
        "milliseconds later, it waits."
    ),
    run=run,
    gpus=1,
)
