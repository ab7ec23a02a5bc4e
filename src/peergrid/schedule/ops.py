"""The operations of schedules, as frozen data.

Hosts issue operations in order. A queue (CUDA: a stream) runs its operations in the order of issue; different queues
run at the same time unless something orders them: an event recorded in one queue and waited for in another, a flag set
and awaited in memory, a barrier, or a host that waits before it issues more.

Ownership follows CUDA's rules, and constructors refuse operations that break them: a kernel goes to a queue of the
device that is current, an event is recorded into a queue of its own device; copies may be issued to any queue, and any
queue or host may wait for any event.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from peergrid.errors import UsageError
from peergrid.grid import Box

Route = Literal["copy", "store", "host"]
"""The route of a halo: copy engine, stores from the computing kernel, or staged through host memory."""

Carrier = Literal["mpi", "mpi-direct", "nccl", "nvshmem"]
"""The route of a message between processes: MPI, staged through host memory, or given the memory of GPUs; NCCL; or
NVSHMEM, by which a kernel puts it into the other GPU's memory."""


def _check_device(device: int) -> None:
    """Refuse negative numbers, which Python would count from the last device."""
    if device < 0:
        raise UsageError(f"Devices are numbered from 0, got {device}.")


def _check_value(value: int, least: int) -> None:
    """A flag is 0 at the start; a wait for 0 within a schedule waits for earlier iterations."""
    if value < least:
        raise UsageError(f"A flag is set to 1 or more, and awaited at 0 or more, got {value}.")


@dataclass(frozen=True, slots=True, order=True)
class Queue:
    """Work of one device in order. Priority as in CUDA: smaller numbers go first."""

    device: int
    name: str
    priority: int = 0

    def __post_init__(self) -> None:
        _check_device(self.device)

    def __str__(self) -> str:
        return f"{self.device}:{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A point in a queue of its device that others can wait for. Recording it again moves it."""

    device: int
    name: str

    def __post_init__(self) -> None:
        _check_device(self.device)

    def __str__(self) -> str:
        return f"{self.device}:{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Flag:
    """A counter in the memory of its device that only grows; other devices set it, its own waits for it."""

    device: int
    name: str

    def __post_init__(self) -> None:
        _check_device(self.device)

    def __str__(self) -> str:
        return f"{self.device}:{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Semaphore(Flag):
    """A flag in host memory that queues set and await by stream memory operations, without a kernel."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Advance every state field on `box` from time `level` by `steps`, reading slot `source`, writing slot `target`.

    `device` is the device current at the issue; `level` counts from the start of the schedule.
    """

    host: int
    device: int
    queue: Queue
    box: Box
    level: int
    steps: int
    source: int
    target: int

    def __post_init__(self) -> None:
        _check_queue(self.device, self.queue)


@dataclass(frozen=True, slots=True)
class WrappedCompute(Compute):
    """A computation that reads across periodic edges of axes that are not split: it reads the cells at the other end of
    the axis, and needs no ghost cells there.
    """


@dataclass(frozen=True, slots=True)
class Reduce:
    """Reduce the cells of `box` as the problem's reduction of that name says: those of time `level`, in slot `slot`.

    Values before the step are in the other slot. `level` counts from the start of the schedule.
    """

    host: int
    device: int
    queue: Queue
    reduction: str
    box: Box
    level: int
    slot: int

    def __post_init__(self) -> None:
        _check_queue(self.device, self.queue)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Cells of one field, in slot `slot` at time `level`, from the owner's box into another device's ghost cells."""

    host: int
    queue: Queue
    field: str
    slot: int
    level: int
    source_device: int
    source_box: Box
    target_device: int
    target_box: Box

    def __post_init__(self) -> None:
        _check_device(self.source_device)
        _check_device(self.target_device)
        if self.source_box.shape != self.target_box.shape:
            raise UsageError(
                f"A {type(self).__name__} needs boxes of one shape, got {self.source_box} and {self.target_box}."
            )


@dataclass(frozen=True, slots=True)
class Copy(Transfer):
    """A complete transfer, from memory to memory."""

    route: Route = "copy"


@dataclass(frozen=True, slots=True)
class Send(Transfer):
    """The first half of a transfer between processes: the source's cells leave as a message.

    Messages of one tag go from one device to another, and arrive in the order in which they were sent; the queue
    continues when the cells have been read, and no more than `IN_FLIGHT` messages of a tag are on their way.
    """

    tag: int

    def __post_init__(self) -> None:
        Transfer.__post_init__(self)
        _check_message(self, self.source_device)


@dataclass(frozen=True, slots=True)
class Receive(Transfer):
    """The other half: the queue waits for the tag's next message, and writes it into the target's ghost cells."""

    tag: int

    def __post_init__(self) -> None:
        Transfer.__post_init__(self)
        _check_message(self, self.target_device)


@dataclass(frozen=True, slots=True)
class Record:
    """Set the event to this point of the queue."""

    host: int
    device: int
    queue: Queue
    event: Event

    def __post_init__(self) -> None:
        if self.queue.device != self.device:
            raise UsageError(
                f"An event can be recorded only while its queue's device is current: device {self.device} is current, "
                f"queue '{self.queue.name}' belongs to device {self.queue.device}; make that device current first."
            )
        if self.event.device != self.queue.device:
            raise UsageError(
                f"An event can be recorded only into a queue of its own device: event '{self.event.name}' belongs to "
                f"device {self.event.device}, queue '{self.queue.name}' to device {self.queue.device}; "
                f"use an event of device {self.queue.device}."
            )


@dataclass(frozen=True, slots=True)
class Wait:
    """The queue continues only after the event, as last recorded before this operation was issued."""

    host: int
    queue: Queue
    event: Event


@dataclass(frozen=True, slots=True)
class SignalOp:
    """After all earlier work of the queue is visible, set a flag to `value` (counted from the schedule's start)."""

    host: int
    queue: Queue
    flag: Flag
    value: int

    def __post_init__(self) -> None:
        _check_value(self.value, 1)


@dataclass(frozen=True, slots=True)
class SignalWait:
    """The queue continues only when the flag, which is on its own device, has reached `value`; 0: its value after
    earlier iterations.
    """

    host: int
    queue: Queue
    flag: Flag
    value: int

    def __post_init__(self) -> None:
        _check_value(self.value, 0)
        if self.flag.device != self.queue.device:
            raise UsageError(
                f"A queue awaits flags of its own device: flag '{self.flag.name}' lies on device {self.flag.device}, "
                f"queue '{self.queue.name}' belongs to device {self.queue.device}."
            )


@dataclass(frozen=True, slots=True)
class Sync:
    """The host issues no more until a queue is empty, or an event has happened, of any device."""

    host: int
    target: Queue | Event


@dataclass(frozen=True, slots=True)
class HostBarrier:
    """The hosts issue no more until all of them are here."""

    hosts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceBarrier:
    """The queues continue only when all of them have arrived, and the earlier work of each is visible to all."""

    queues: tuple[Queue, ...]
    hosts: tuple[int, ...]


Touching = Compute | Reduce | Copy | Send | Receive
"""The operations that read or write fields; the others order them."""

Ordering = Record | Wait | SignalOp | SignalWait | Sync | HostBarrier | DeviceBarrier

Op = Touching | Ordering

Signal = SignalOp | SignalWait
"""The operations on flags."""

IN_FLIGHT = 2
"""Messages of one tag that have been sent and not received: as many as there are buffers."""


def hosts_of(op: Op) -> tuple[int, ...]:
    """The hosts that take part in issuing an operation."""
    return op.hosts if isinstance(op, HostBarrier | DeviceBarrier) else (op.host,)


def queues_of(op: Op) -> tuple[Queue, ...]:
    """The queues that an operation runs in (none for what the host alone does)."""
    if isinstance(op, DeviceBarrier):
        return op.queues
    return () if isinstance(op, Sync | HostBarrier) else (op.queue,)


def access_key(op: Touching) -> Hashable:
    """The fields of an operation that determine which memory it reads and writes."""
    if isinstance(op, Compute):
        return type(op), op.device, op.box, op.steps, op.source, op.target
    if isinstance(op, Reduce):
        return op.device, op.box, op.reduction, op.slot
    if isinstance(op, Send):
        return "send", op.field, op.slot, op.source_device, op.source_box
    if isinstance(op, Receive):
        return "receive", op.field, op.slot, op.target_device, op.target_box
    return op.field, op.slot, op.source_device, op.source_box, op.target_device, op.target_box


def describe(op: Op) -> str:
    """One line that names an operation in messages."""
    match op:
        case Compute():
            span = f"{op.level}→{op.level + op.steps}"
            return f"Compute {op.box} steps {span} slot {op.source}→{op.target} in {op.queue}"
        case Reduce():
            return f"Reduce '{op.reduction}' {op.box} level {op.level} slot {op.slot} in {op.queue}"
        case Copy() | Send() | Receive():
            way = f"{op.source_device}:{op.source_box}→{op.target_device}:{op.target_box}"
            tag = "" if isinstance(op, Copy) else f" tag {op.tag}"
            return f"{type(op).__name__} '{op.field}' {way} slot {op.slot} level {op.level}{tag} in {op.queue}"
        case Record() | Wait():
            return f"{type(op).__name__} event {op.event} in {op.queue}"
        case SignalOp() | SignalWait():
            return f"{type(op).__name__} flag {op.flag} = {op.value} in {op.queue}"
        case Sync():
            return f"Sync host {op.host} with {op.target}"
        case HostBarrier():
            return f"HostBarrier of hosts {', '.join(map(str, op.hosts))}"
        case DeviceBarrier():
            return f"DeviceBarrier of queues {', '.join(map(str, op.queues))}"


def _check_message(op: Send | Receive, device: int) -> None:
    """Check that a message is sent in a queue of its source, or received in one of its target."""
    if op.queue.device != device:
        raise UsageError(
            f"{type(op).__name__} of device {device} belongs in one of its queues, not in '{op.queue}' of another."
        )


def _check_queue(device: int, queue: Queue) -> None:
    if queue.device != device:
        raise UsageError(
            f"A kernel can be launched only into a queue of the current device: device {device} is current, "
            f"queue '{queue.name}' belongs to device {queue.device}; make that device current first."
        )
