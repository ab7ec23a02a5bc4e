"""All GPUs of the machine under one process: contexts, memory, streams, events, kernels.

A thin layer over the driver API. Whatever a `Scope` hands out is given back when it ends, in reverse order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peergrid.machine.driver import attribute, call, kept_current
from peergrid.probe.cuda.compile import cubin

Array = np.ndarray[Any, Any]


def u64(value: int) -> ctypes.c_uint64:
    """A kernel argument: a pointer or a 64-bit count."""
    return ctypes.c_uint64(value)


def u32(value: int) -> ctypes.c_uint32:
    """A kernel argument: a 32-bit count."""
    return ctypes.c_uint32(value)


def f32(value: float) -> ctypes.c_float:
    """A kernel argument: a single-precision number."""
    return ctypes.c_float(value)


@dataclass(frozen=True, slots=True)
class Stream:
    """A queue of GPU `device`; `handle` is the driver's."""

    device: int
    handle: Any


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel on one GPU; call it to launch it."""

    devices: Gpus
    device: int
    name: str
    function: Any

    def __call__(
        self, stream: Stream, grid: int, block: int, *arguments: Any, cooperative: bool = False, shared: int = 0
    ) -> None:
        """Put the kernel into a stream. `arguments` are ctypes scalars in the order of its parameters."""
        self.devices.use(self.device)
        packed = (tuple(a.value for a in arguments), tuple(type(a) for a in arguments)) if arguments else 0
        shape = (self.function, grid, 1, 1, block, 1, 1, shared, stream.handle, packed)
        if cooperative:
            self.devices.call("cuLaunchCooperativeKernel", *shape)
        else:
            self.devices.call("cuLaunchKernel", *shape, 0)

    def fits(self, block: int) -> int:
        """The number of blocks of this size that are co-resident on a multiprocessor."""
        self.devices.use(self.device)
        return int(self.devices.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self.function, block, 0))


@dataclass(frozen=True, slots=True)
class Pinned:
    """Page-locked host memory that GPUs see at the same address; `words` views it as 32-bit words."""

    address: int
    words: Array


@dataclass(slots=True)
class Gpus:
    """The GPUs, their contexts made current by `use`, and peer access between all pairs that have it."""

    driver: Any
    contexts: list[Any]
    peers: set[tuple[int, int]] = field(default_factory=set)
    modules: dict[tuple[str, int], Any] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, driver: Any) -> Iterator[Gpus]:
        """Retain the primary context of every GPU and enable all peer access; release them at the end, when the current
        context is the one before.
        """
        contexts: list[Any] = []
        with kept_current(driver):
            try:
                for device in range(int(call(driver, "cuDeviceGetCount"))):
                    contexts.append(call(driver, "cuDevicePrimaryCtxRetain", device))
                devices = cls(driver, contexts)
                for source in range(len(contexts)):
                    for target in range(len(contexts)):
                        devices.enable(source, target)
                yield devices
            finally:
                for device in range(len(contexts)):
                    driver.cuDevicePrimaryCtxRelease(device)

    def __len__(self) -> int:
        return len(self.contexts)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the driver in the current context (see `peergrid.machine.driver.call`)."""
        return call(self.driver, name, *arguments)

    def use(self, device: int) -> None:
        """Make the context of a GPU current for this thread."""
        self.call("cuCtxSetCurrent", self.contexts[device])

    def kept_current(self) -> AbstractContextManager[None]:
        """A block after which the thread's current context is the one before."""
        return kept_current(self.driver)

    def attribute(self, name: str, device: int = 0) -> int:
        """A device attribute, such as 'MULTIPROCESSOR_COUNT'."""
        return attribute(self.driver, name, device)

    @property
    def multiprocessors(self) -> int:
        """Multiprocessors of the first GPU."""
        return self.attribute("MULTIPROCESSOR_COUNT")

    def enable(self, source: int, target: int) -> bool:
        """Let kernels of `source` reach the memory of `target`; False if the machine does not allow it.

        A pair may be able to and still be refused: without a switch a GPU serves a limited number of peers.
        """
        if source == target or (source, target) in self.peers:
            return source != target
        if not int(self.call("cuDeviceCanAccessPeer", source, target)):
            return False
        self.use(source)
        if int(self.driver.cuCtxEnablePeerAccess(self.contexts[target], 0)[0]):
            return False
        self.peers.add((source, target))
        return True

    def disable(self, source: int, target: int) -> None:
        """Take peer access away again."""
        if (source, target) in self.peers:
            self.use(source)
            self.call("cuCtxDisablePeerAccess", self.contexts[target])
            self.peers.discard((source, target))

    @contextmanager
    def apart(self, one: int, other: int) -> Iterator[None]:
        """Two GPUs without access to each other's memory, for a while; then again what they had."""
        had = [pair for pair in ((one, other), (other, one)) if pair in self.peers]
        for pair in had:
            self.disable(*pair)
        try:
            yield
        finally:
            for pair in had:
                self.enable(*pair)

    def pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs with peer access."""
        return sorted(self.peers)

    def kernel(self, device: int, source: str, name: str) -> LoadedKernel:
        """A kernel of `kernels/<source>.cu`, compiled for this GPU."""
        if (source, device) not in self.modules:
            major, minor = (self.attribute(f"COMPUTE_CAPABILITY_{part}", device) for part in ("MAJOR", "MINOR"))
            self.use(device)
            code = cubin(source, f"sm_{major}{minor}")
            self.modules[source, device] = self.call("cuModuleLoadData", code)
        function = self.call("cuModuleGetFunction", self.modules[source, device], name.encode())
        return LoadedKernel(self, device, name, function)

    def wait(self, device: int) -> None:
        """Wait until a GPU has nothing left to do.

        Raises:
            DeviceFault: a kernel failed, or the GPU disappeared.
        """
        self.use(device)
        self.call("cuCtxSynchronize")

    def wait_all(self, count: int) -> None:
        """Wait for the first `count` GPUs, one after the other."""
        for device in range(count):
            self.wait(device)

    def fill(self, device: int, address: int, value: int, words: int) -> None:
        """Set 32-bit words of device memory, and wait."""
        self.use(device)
        self.call("cuMemsetD32", address, value, words)
        self.call("cuCtxSynchronize")

    def read(self, device: int, address: int, count: int, kind: type[np.generic] = np.uint32) -> Array:
        """Copy `count` numbers from device memory to a new array."""
        found = np.empty(count, kind)
        self.use(device)
        self.call("cuMemcpyDtoH", found.ctypes.data, address, found.nbytes)
        return found

    def put(self, device: int, address: int, values: Array) -> None:
        """Copy an array to device memory."""
        self.use(device)
        self.call("cuMemcpyHtoD", address, values.ctypes.data, values.nbytes)

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Hand out memory, streams and events; all of it is given back at the end, also after an error."""
        with ExitStack() as stack:
            yield Scope(self, stack)


@dataclass(frozen=True, slots=True)
class Scope:
    """The resources that an experiment takes from the devices for a while."""

    devices: Gpus
    stack: ExitStack

    def memory(self, device: int, size: int) -> int:
        """Plain device memory of `size` bytes; its address."""
        self.devices.use(device)
        address = int(self.devices.call("cuMemAlloc", size))
        self._later(device, "cuMemFree", address)
        return address

    def words(self, device: int, count: int) -> int:
        """Zeroed 32-bit words on a GPU; their address."""
        address = self.memory(device, 4 * count)
        self.devices.fill(device, address, 0, count)
        return address

    def pinned(self, size: int) -> Pinned:
        """Zeroed page-locked host memory, seen by all GPUs (portable and mapped)."""
        self.devices.use(0)
        address = int(self.devices.call("cuMemHostAlloc", size, 3))
        self._later(0, "cuMemFreeHost", address)
        raw = (ctypes.c_uint32 * (size // 4)).from_address(address)
        words = np.ctypeslib.as_array(raw)
        words[:] = 0
        return Pinned(address, words)

    def stream(self, device: int) -> Stream:
        """A stream that does not wait for the default stream."""
        self.devices.use(device)
        handle = self.devices.call("cuStreamCreate", 1)
        self._later(device, "cuStreamDestroy", handle)
        return Stream(device, handle)

    def event(self, device: int) -> Any:
        """An event with timing."""
        self.devices.use(device)
        handle = self.devices.call("cuEventCreate", 0)
        self._later(device, "cuEventDestroy", handle)
        return handle

    def _later(self, device: int, name: str, *arguments: Any) -> None:
        """Give something back at the end; after a fault the driver may refuse, and that hides nothing."""
        driver, context = self.devices.driver, self.devices.contexts[device]
        release: Callable[..., Any] = getattr(driver, name)

        def give_back() -> None:
            driver.cuCtxSetCurrent(context)
            release(*arguments)

        self.stack.callback(give_back)
