"""The processes among which the devices of a run are divided, as an executor of GPUs asks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from peergrid.runtime.cuda.device.driver import CudaDriver


@dataclass(frozen=True)
class Line:
    """The messages of one tag that a process sends, or receives, by buffers in host memory, or in that of its GPU.

    Message m, from 0, is in buffer m modulo their number. queue, carrier: addresses of two words. Of messages that are
    sent a queue says by its word how many it has put into buffers, and the carrier how many have left them; of those
    that are received a queue says how many it has taken, and the carrier how many have arrived.

    first: the number of the first message, which both words have already counted; count: of messages.
    """

    tag: int
    peer: int
    sends: bool
    buffers: tuple[tuple[int, int], ...]  # address and bytes
    queue: int
    carrier: int
    first: int
    count: int


class Calls(Protocol):
    """A library whose functions queues are given to send and receive; address: of its communicator."""

    address: int

    def entry(self, name: str) -> int:
        """The address of a function."""

    def abort(self) -> None:
        """End what waits for a process that does not come."""


class Heap(Protocol):
    """Memory of which every process has as much, under one number in all: kernels put bytes into that of others."""

    def allocate(self, count: int) -> int:
        """The address of so many zeroed bytes; all processes call it, with the same count."""

    def free(self, pointer: int) -> None:
        """Leave the bytes to later allocations; nobody waits."""

    def kernel(self, driver: CudaDriver, architecture: str) -> int:
        """The kernel that moves messages, for the current GPU."""


class Processes(Protocol):
    """Every call is made by all of them, in the same order.

    rank: of this one, from 0; by_address: whether they are on one host, and neighbours address each other's memory.
    """

    rank: int
    by_address: bool

    @property
    def calls(self) -> Calls | None:
        """The library by which queues exchange messages themselves; None where host memory is between them."""

    @property
    def heap(self) -> Heap | None:
        """The memory into which kernels put messages; None where they do not."""

    @property
    def of_device(self) -> tuple[int, ...]:
        """The process of each device."""

    @property
    def mine(self) -> tuple[int, ...]:
        """The devices of this process."""

    def allgather(self, value: Any) -> list[Any]:
        """The values of all processes, in order."""

    @property
    def direct(self) -> bool:
        """True where messages are carried from GPU memory to GPU memory."""

    def try_direct(self, driver: CudaDriver) -> None:
        """Carry a test message between the current GPUs of all. Raises UsageError, on all, where it is not intact."""

    def carry(self, lines: Sequence[Line], enter: Callable[[], object]) -> AbstractContextManager[None]:
        """Carry messages while queues are at work; at the end of the context all have left and arrived, or, where it
        ends by an exception, those that are still awaited are given up. enter: makes a GPU current for a thread.
        """

    def shared(self, count: int) -> int:
        """The address of so many zeroed bytes of host memory, whole pages of it, that all processes of the host see."""
