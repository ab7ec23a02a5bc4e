"""The devices of one run: contexts, queues as streams, events, memory. Whatever is taken is given back by `close`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from peergrid.errors import PeergridError, UsageError
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.device.processes import Calls, Heap, Processes
from peergrid.schedule.ops import Event, Queue

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Devices:
    """Virtual devices on GPUs: `ordinals[d]` is the GPU of device `d`; one GPU may stand for several devices.

    mine: the devices of this process; processes: those that have the others.
    """

    def __init__(self, driver: CudaDriver, ordinals: tuple[int, ...], processes: Processes | None = None) -> None:
        self.driver = driver
        self.ordinals = ordinals
        self.processes = processes
        self.mine = tuple(range(len(ordinals))) if processes is None else processes.mine
        self._streams: dict[Queue, int] = {}
        self._events: dict[tuple[Event, bool], int] = {}
        self._entries: dict[str, int] = {}
        self._constants: dict[tuple[int, bytes], int] = {}
        self._modules: dict[tuple[int, bytes], int] = {}
        self._functions: dict[tuple[int, bytes, str], int] = {}
        self._loading = Lock()
        self._closed, self._before = False, 0
        present = driver.device_count()
        used = sorted({ordinals[device] for device in self.mine})
        for ordinal in used:
            if not 0 <= ordinal < present:
                raise UsageError(f"This machine has {present} CUDA devices, numbered from 0; got {ordinal}.")
        self._context_of: dict[int, int] = {}
        with ExitStack() as taken:  # given back where the next one is refused
            for ordinal in used:
                self._context_of[ordinal] = driver.retain(ordinal)
                taken.callback(_quietly, driver.release, ordinal)
            self._stack = taken.pop_all()
        self._stack.callback(self._restore)

    @property
    def count(self) -> int:
        return len(self.ordinals)

    @property
    def calls(self) -> Calls | None:
        """The library by which queues exchange messages with other processes, if they do."""
        found = self._joined()
        return None if found is None else found.calls

    @property
    def heap(self) -> Heap | None:
        """The memory into which kernels of all processes put messages, if they do."""
        found = self._joined()
        return None if found is None else found.heap

    def _joined(self) -> Processes | None:
        """The processes; their libraries start on the device that is current then, the first one here."""
        if self.processes is not None:
            self.on(self.mine[0])
        return self.processes

    def context(self, device: int) -> int:
        """The context of a device; for a device of another process, which is of the same kind, that of the first
        here.
        """
        return self._context_of.get(self.ordinals[device], self._context_of[self.ordinals[self.mine[0]]])

    def on(self, device: int) -> CudaDriver:
        """The driver, with the context of a device current for this thread."""
        self.driver.make_current(self.context(device))
        return self.driver

    def architecture(self, device: int) -> str:
        return self.driver.architecture(self.ordinals[device])

    def stream(self, queue: Queue) -> int:
        """The stream of a queue."""
        if queue not in self._streams:
            driver = self.driver
            made = self._taken(queue.device, driver.create_stream, driver.destroy_stream, queue.priority)
            self._streams[queue] = made
        return self._streams[queue]

    def event(self, event: Event, timing: bool = False) -> int:
        """The event's handle; without timing unless asked for, which costs less."""
        if (event, timing) not in self._events:
            made = self._taken(event.device, self.driver.create_event, self.driver.destroy_event, timing)
            self._events[event, timing] = made
        return self._events[event, timing]

    def elapsed(self, first: Event, last: Event) -> float:
        """Seconds between two events of a device, recorded with timing."""
        return self.on(first.device).elapsed(self.event(first, timing=True), self.event(last, timing=True))

    def entry(self, name: str) -> int:
        """The address of a driver function."""
        if name not in self._entries:
            self._entries[name] = self.driver.entry(name)
        return self._entries[name]

    def allocate(self, device: int, count: int) -> int:
        """That many bytes of device memory."""
        return self._taken(device, self.driver.allocate, self.driver.free, count)

    def symmetric(self, device: int, count: int) -> int:
        """That many zeroed bytes of the heap of all processes, each of which calls it; of one device in each."""
        heap = self.heap
        assert heap is not None, "messages are put into the heap of all processes"
        return self._taken(device, heap.allocate, heap.free, count)

    def allocate_host(self, count: int) -> int:
        """That many bytes of pinned host memory that all devices reach."""
        return self._taken(self.mine[0], self.driver.allocate_host, self.driver.free_host, count)

    def zeroed_host(self, count: int) -> int:
        """The same, zeroed: whole words."""
        pointer = self.allocate_host(count)
        host_words(pointer, count // 8)[:] = 0
        return pointer

    def shared_host(self, count: int) -> int:
        """That many zeroed bytes of host memory that the devices of all processes of the host reach."""
        if self.processes is None or not self.processes.by_address:
            return self.zeroed_host(count)
        first, pointer = self.mine[0], self.processes.shared(count)
        self.on(first).register_host(pointer, count)
        self.on_close(first, self.driver.unregister_host, pointer)
        return pointer

    def opened(self, device: int, handle: bytes) -> int:
        """The address, for a device, of memory of another process."""
        return self._taken(device, self.driver.open_memory, self.driver.close_memory, handle)

    def of_all(self, found: Mapping[Key, Value]) -> dict[Key, Value]:
        """The values that all processes have, each for its own devices."""
        parts = [found] if self.processes is None else self.processes.allgather(dict(found))
        return {key: value for part in parts for key, value in part.items()}

    def constant(self, device: int, values: np.ndarray[Any, Any]) -> int:
        """Device memory that holds these values and never changes; the same bytes are kept once."""
        key = (device, values.tobytes())
        if key not in self._constants:
            self._constants[key] = self.allocate(device, values.nbytes)
            self.driver.upload(self._constants[key], values)
        return self._constants[key]

    def function(self, device: int, cubin: bytes, name: str) -> int:
        """A kernel of a program on a device."""
        key, driver = (self.context(device), cubin), self.on(device)
        with self._loading:  # threads that compile ask for kernels, too
            if self._closed:
                raise UsageError("The devices were given back.")
            if key not in self._modules:
                self._modules[key] = self._taken(device, driver.load, driver.unload, cubin)
            if (*key, name) not in self._functions:
                self._functions[*key, name] = driver.function(self._modules[key], name)
            return self._functions[*key, name]

    def graph(self, device: int, stream: int) -> int:
        """The graph captured in a stream, ready to be launched."""
        graph = self.on(device).end_capture(stream)
        try:
            executable = self.driver.instantiate(graph)
        finally:
            _quietly(self.driver.destroy_graph, graph)
        self.on_close(device, self.driver.destroy_executable, executable)
        return executable

    def give_up_capture(self, device: int, stream: int) -> None:
        """End a capture that failed."""
        with suppress(PeergridError):
            self.driver.destroy_graph(self.on(device).end_capture(stream))

    def synchronize(self) -> None:
        """Wait until every device has nothing left to do."""
        for device in self.mine:
            self.on(device).synchronize()

    def close(self) -> None:
        """Give everything back; what fails because the device is lost is passed over.

        The thread keeps its current context: the garbage collector may close devices between two calls of another run.
        """
        self._closed = True
        with self._stack, suppress(PeergridError):  # an interrupt in between gives everything back, too
            self._before = self.driver.current()

    def _restore(self) -> None:
        _quietly(self.driver.make_current, self._before)

    def on_close(self, device: int, action: Callable[..., None], *args: int) -> None:
        """Do something on a device, before what was taken earlier is given back."""

        def undo() -> None:
            self.on(device)
            action(*args)

        self._stack.callback(_quietly, undo)

    def _taken(self, device: int, take: Callable[..., int], give_back: Callable[[int], None], *args: Any) -> int:
        """A handle of the driver on a device, which `close` gives back."""
        self.on(device)
        handle = take(*args)
        self.on_close(device, give_back, handle)
        return handle


@contextmanager
def borrowed(ordinals: tuple[int, ...], driver: CudaDriver | None = None) -> Iterator[Devices]:
    """Devices for a block of code, after which the thread's current context is the one before; driver: the installed
    one by default.
    """
    driver = driver or CudaDriver()
    with driver.kept_current(), closing(Devices(driver, ordinals)) as devices:
        yield devices


def _quietly(action: Callable[..., None], *args: int) -> None:
    try:
        action(*args)
    except PeergridError:
        return


def host_words(pointer: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Words of host memory at an address, as an array."""
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(pointer))
