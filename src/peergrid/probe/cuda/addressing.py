"""One address space: who owns a pointer, what the default stream waits for, which copies are asynchronous."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from peergrid.probe.cuda.devices import Gpus, Scope, Stream, u64
from peergrid.probe.cuda.hostloop import library
from peergrid.probe.cuda.vmm import granularity, mapped
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

HOST_MEMORY, DEVICE_MEMORY = 1, 2  # CUmemorytype
ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
LEGACY, PER_THREAD = 1, 2  # the driver's handles of the two default streams
BLOCKING, INDEPENDENT = 0, 1  # flags of cuStreamCreate
PAUSE_SECONDS = 0.005
COPIED, EACH = 1 << 20, 2 << 20  # bytes of a copy, and of a piece of memory
PIECES = 8  # of each GPU, taken alternately


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Owners of all kinds of memory, asked from the context of GPU 0; then the order of default streams."""
    devices: Gpus = bench.devices
    devices.use(0)
    if devices.attribute("UNIFIED_ADDRESSING"):
        yield from _owners(devices)
    else:
        yield Lack("owners of pointers: these GPUs have address spaces of their own")
    yield from _orders(devices)
    yield from _orders_of_copies(devices)
    yield from _returns(devices)


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
    if last:
        yield result("addresses_alternate", "", [float(_alternate(devices))], {"devices": last + 1}, floor=0.0)


def _alternate(devices: Gpus) -> bool:
    """True if addresses of one GPU lie between those of another: memory taken alternately, looked at in order."""
    with devices.scope() as scope:
        taken = sorted((scope.memory(device, EACH), device) for _ in range(PIECES) for device in range(len(devices)))
    changes = sum(one != other for (_, one), (_, other) in pairwise(taken))
    return changes >= len(devices)


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


def _stream(scope: Scope, flags: int, device: int = 0) -> Stream:
    devices = scope.devices
    devices.use(device)
    handle: Any = devices.call("cuStreamCreate", flags)
    scope.stack.callback(devices.driver.cuStreamDestroy, handle)
    return Stream(device, handle)


def _waits(scope: Scope, later: Stream, earlier: Stream, work: Callable[[], None] | None = None) -> bool:
    """True if work in `later` is not done some milliseconds after a kernel in `earlier` that is kept waiting.

    The work is a kernel that does nothing if none is given.
    """
    devices, word, done = scope.devices, scope.pinned(64), scope.event(later.device)
    nothing = devices.kernel(later.device, "launch", "nothing")
    devices.kernel(earlier.device, "launch", "gate")(earlier, 1, 1, u64(word.address))
    if work is None:
        nothing(later, 1, 1)
    else:
        work()
    devices.use(later.device)
    devices.call("cuEventRecord", done, later.handle)
    time.sleep(PAUSE_SECONDS)
    waits = int(devices.driver.cuEventQuery(done)[0]) != 0
    word.words[0] = 1
    devices.wait(earlier.device)
    devices.wait(later.device)
    return waits


def _orders_of_copies(devices: Gpus) -> Iterator[Measurement | Lack]:
    """A copy from GPU 0 to GPU 1 in the default stream of GPU 0: what it waits for, and what waits for it."""
    if len(devices) < 2:
        yield Lack("copies between GPUs in a default stream: this machine has one GPU")
        return
    with devices.scope() as scope:
        legacy, blocking = Stream(0, LEGACY), {device: _stream(scope, BLOCKING, device) for device in (0, 1)}
        source, target = scope.memory(0, COPIED), scope.memory(1, COPIED)

        def copy() -> None:
            devices.use(0)
            devices.call("cuMemcpyPeerAsync", target, devices.contexts[1], source, devices.contexts[0], COPIED, LEGACY)

        def copy_then_kernel(later: Stream) -> Callable[[], None]:
            kernel = devices.kernel(later.device, "launch", "nothing")

            def work() -> None:
                copy()
                kernel(later, 1, 1)

            return work

        for device, where in ((0, "the source"), (1, "the target")):
            waits = _waits(scope, legacy, blocking[device], copy)
            at: At = {"stream": "default, a copy to another GPU", "for": f"blocking, on {where}"}
            yield result("stream_waits", "", [float(waits)], at, floor=0.0)
        for device, where in ((0, "the source"), (1, "the target")):
            waits = _waits(scope, blocking[device], legacy, copy_then_kernel(blocking[device]))
            at = {"stream": f"blocking, on {where}", "for": "default, a copy to another GPU"}
            yield result("stream_waits", "", [float(waits)], at, floor=0.0)


def _returns(devices: Gpus) -> Iterator[Measurement]:
    """1 where the call of an asynchronous copy returns while its stream is kept waiting; a thread ends the waiting."""
    for memory in ("pinned", "pageable"):
        for direction in ("to device", "to host"):
            with devices.scope() as scope:
                back = _returns_at_once(scope, memory, direction)
            at: At = {"memory": memory, "direction": direction}
            yield result("copy_returns", "", [float(back)], at, floor=0.0)


def _returns_at_once(scope: Scope, memory: str, direction: str) -> bool:
    devices, word, stream = scope.devices, scope.pinned(64), scope.stream(0)
    plain, there = np.ones(COPIED, np.uint8), scope.memory(0, COPIED)
    here = scope.pinned(COPIED).address if memory == "pinned" else plain.ctypes.data
    opened = threading.Timer(20 * PAUSE_SECONDS, word.words.__setitem__, (0, 1))
    devices.kernel(0, "launch", "gate")(stream, 1, 1, u64(word.address))
    opened.start()
    if direction == "to device":
        devices.call("cuMemcpyHtoDAsync", there, here, COPIED, stream.handle)
    else:
        devices.call("cuMemcpyDtoHAsync", here, there, COPIED, stream.handle)
    back = int(word.words[0]) == 0
    opened.join()
    devices.wait(0)
    return back


PROBE = Probe(
    name="addressing",
    group="atomics and order",
    title="Who owns a pointer, what the default stream waits for, and which asynchronous copies return at once",
    unit="",
    method=(
        "cuPointerGetAttribute on memory of every kind, asked from the context of GPU 0. Order: a kernel is held in "
        "one stream by a word of the host, another (or a copy between GPUs in the default stream) is put into a second "
        "stream; if that one is not done five milliseconds later, it waits. Copies of 1 MiB between host and GPU are "
        "put behind such a kernel, which ends a tenth of a second later: a call that is back before it returns at "
        "once. Addresses alternate where some of one GPU lie between those of another."
    ),
    run=run,
    gpus=1,
)
