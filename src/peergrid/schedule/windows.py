"""The proof of schedules for many devices, by windows of neighbouring devices, one of each kind.

A window has the operations of a device and of those near it. What it orders, the whole schedule orders, too: leaving
out other devices only takes away operations that others wait for. Every access to a device's memory is by a device in
its window, so a window that is free of races and of stale reads for its device in the middle proves them for this
device; a stale value that an outer device would read shows in the window of that device. Two windows are of one kind
where all operations, and the cells that they access, are equal but for the numbers of devices and a translation.

The absence of deadlocks is shown for the whole schedule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import NamedTuple

from peergrid.grid import Box, Index
from peergrid.schedule.access import Access, accesses, declared
from peergrid.schedule.access_table import AccessTable
from peergrid.schedule.build import Schedule
from peergrid.schedule.due import unreduced
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import stuck
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import (
    Compute,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Record,
    Reduce,
    SignalOp,
    SignalWait,
    Sync,
    Transfer,
    Wait,
    hosts_of,
)
from peergrid.schedule.unroll import unroll
from peergrid.schedule.verify import objections
from peergrid.stencil import write_box

REACH = 2  # devices of a window on each way from the middle, as exchanges connect them
MANY = 24  # least number of devices for proofs by windows


@dataclass(frozen=True)
class Window:
    """The operations of some devices, in the order of schedules; middle: the device that it proves."""

    middle: int
    devices: frozenset[int]
    iterations: tuple[Schedule, ...]

    def concerns(self, fault: Fault) -> bool:
        """True for a fault of the middle, or of no operation."""
        return not fault.ops or any(self.middle in devices_of(op) for op in fault.ops)


def objections_by_window(
    layout: Layout, iterations: Sequence[Schedule], windows: Iterable[Window] | None = None
) -> Iterator[Fault]:
    """The faults of schedules executed one after another, from one window of each kind and from the whole.

    windows: one of each kind, if known.
    """
    yield from stuck(unroll(iterations))
    for schedule in {id(one): one for one in iterations}.values():
        yield from unreduced(layout, schedule)
    for window in kinds(layout, iterations) if windows is None else windows:
        table = AccessTable(layout, window.iterations, devices=window.devices)
        yield from filter(window.concerns, objections(window.iterations, table))


def kinds(layout: Layout, iterations: Sequence[Schedule]) -> Iterator[Window]:
    """A window of each kind, in the order of devices."""
    parts = {id(schedule): _Parts(layout, schedule) for schedule in iterations}
    several, seen = list(parts.values()), set[Hashable]()
    for middle in range(layout.devices):
        devices = several[0].near(middle)
        kind = tuple(part.kind(middle, devices) for part in several)
        if kind not in seen:
            seen.add(kind)
            found = {key: part.window(devices) for key, part in parts.items()}
            yield Window(middle, frozenset(devices), tuple(found[id(schedule)] for schedule in iterations))


def devices_of(op: Op) -> tuple[int, ...]:
    """The devices that an operation belongs to, both ends of a transfer among them."""
    match op:
        case Compute() | Reduce():
            return (op.device,)
        case HostBarrier():
            return ()
        case DeviceBarrier():
            return tuple(queue.device for queue in op.queues)
        case Sync():
            return (op.target.device,)
        case Record():
            return (op.queue.device,)
        case Wait():
            return op.queue.device, op.event.device
        case SignalOp() | SignalWait():
            return op.queue.device, op.flag.device
    return op.queue.device, op.source_device, op.target_device


@dataclass(frozen=True)
class _Parts:
    """A schedule by devices."""

    layout: Layout
    schedule: Schedule

    @cached_property
    def links(self) -> dict[int, set[int]]:
        """The devices with which each exchanges."""
        found: dict[int, set[int]] = {device: {device} for device in range(self.layout.devices)}
        for op in self.schedule.ops:
            if isinstance(op, Transfer):
                found[op.source_device].add(op.target_device)
                found[op.target_device].add(op.source_device)
        return found

    def near(self, middle: int) -> tuple[int, ...]:
        """The devices of a window, those nearest to the middle first, in the order of their distance along a line."""
        found, ring = {middle: 0}, [middle]
        for _ in range(REACH):
            ring = sorted({other for device in ring for other in self.links[device]} - found.keys())
            found |= {device: self._offset(middle, device) for device in ring}
        return tuple(sorted(found, key=lambda device: (found[device], device)))

    def _offset(self, middle: int, device: int) -> int:
        """The distance of a device from the middle, the shorter way around."""
        count = self.layout.devices
        return (device - middle + count // 2) % count - count // 2

    @cached_property
    def numbers(self) -> dict[int, list[int]]:
        """The operations of each device by their places in the list."""
        found: dict[int, list[int]] = defaultdict(list)
        for number, op in enumerate(self.schedule.ops):
            for device in set(devices_of(op)):
                found[device].append(number)
        return found

    @cached_property
    def shared(self) -> list[int]:
        """The barriers of hosts."""
        return [number for number, op in enumerate(self.schedule.ops) if isinstance(op, HostBarrier)]

    @cached_property
    def raisers(self) -> dict[Flag, set[int]]:
        """The devices that set each flag."""
        found: dict[Flag, set[int]] = defaultdict(set)
        for op in self.schedule.ops:
            if isinstance(op, SignalOp):
                found[op.flag].add(op.queue.device)
        return found

    def window(self, devices: Sequence[int]) -> Schedule:
        """The schedule of some devices alone; its reductions are looked at in the whole."""
        return replace(self.schedule, ops=tuple(self.ops(devices)), due=())

    def ops(self, devices: Sequence[int]) -> Iterator[Op]:
        """The operations of a window in the order of the list."""
        kept = set(devices)
        places = sorted({n for device in devices for n in self.numbers[device]} | set(self.shared))
        found = [self.schedule.ops[n] for n in places]
        hosts = {host for op in found if not isinstance(op, HostBarrier) for host in hosts_of(op)}
        for op in found:
            if isinstance(op, HostBarrier):
                yield HostBarrier(tuple(host for host in op.hosts if host in hosts))
            elif isinstance(op, DeviceBarrier):
                yield replace(op, queues=tuple(queue for queue in op.queues if queue.device in kept))
            elif kept.issuperset(devices_of(op)) and not (isinstance(op, SignalWait) and self.raisers[op.flag] - kept):
                yield op

    def kind(self, middle: int, devices: Sequence[int]) -> Hashable:
        """The description that windows of one kind share."""
        names = _Names(devices)
        memory = tuple((self._offset_of(device, middle), self._memory[device]) for device in devices)
        return memory, tuple(names.of(self._described(op)) for op in self.ops(devices))

    def _offset_of(self, device: int, middle: int) -> Index:
        return tuple(a - o for a, o in zip(self.origins[device], self.origins[middle], strict=True))

    @cached_property
    def origins(self) -> tuple[Index, ...]:
        """The first cell that each device owns."""
        return tuple(self.layout.partition.owned(device).lo for device in range(self.layout.devices))

    @cached_property
    def _memory(self) -> tuple[Hashable, ...]:
        """The memory of each device and what it owns of every field, seen from its first cell."""
        problem = self.layout.problem
        found = []
        for device, origin in enumerate(self.origins):
            owned = self.layout.partition.owned(device)
            boxes = [owned]
            for name in problem.state:
                boxes += [self.layout.local(device, name), write_box(problem, name, owned)]
            found.append(tuple(_seen_from(origin, box) for box in boxes))
        return tuple(found)

    def _described(self, op: Op) -> _Description:
        """The description of an operation of the schedule, or of its part in a window; computed once."""
        if id(op) not in self._descriptions:
            form = _Form(self.origins[next(iter(devices_of(op)), 0)])
            shape = form.of(op), tuple(map(form.of, accesses(self.layout, op, declared)))
            number = self._numbered.setdefault(shape, len(self._numbered))
            self._descriptions[id(op)] = op, _Description(number, tuple(form.devices), tuple(form.names))
        return self._descriptions[id(op)][1]

    @cached_property
    def _descriptions(self) -> dict[int, tuple[Op, _Description]]:
        return {}

    @cached_property
    def _numbered(self) -> dict[Hashable, int]:
        return {}


class _Description(NamedTuple):
    """An operation: the number of its form, which others share, and the devices, hosts, events and flags in it."""

    form: int
    devices: tuple[int, ...]
    names: tuple[Hashable, ...]


class _Form:
    """The form of an operation, with its boxes relative to a cell; its devices, hosts, events and flags are listed
    separately.
    """

    def __init__(self, origin: Index) -> None:
        self._origin = origin
        self.devices: list[int] = []
        self.names: list[Hashable] = []

    def of(self, value: object) -> Hashable:
        """A part of an operation or of an access."""
        match value:
            case Box():
                return _seen_from(self._origin, value)
            case Queue():
                self.devices.append(value.device)
                return value.name, value.priority
            case Event() | Flag():
                self.names.append(value)
                return type(value).__name__
            case Access():
                device, *place = value.buffer
                self.devices.append(device)
                return *place, self.of(value.box), value.writes, value.previous
            case tuple():
                return tuple(map(self.of, value))
        if is_dataclass(value) and not isinstance(value, type):
            return type(value), *(self._field(field.name, getattr(value, field.name)) for field in fields(value))
        return value

    def _field(self, name: str, value: object) -> Hashable:
        if name in ("device", "source_device", "target_device"):
            self.devices.append(value)  # type: ignore[arg-type]
            return None
        if name in ("host", "hosts"):
            hosts: Sequence[int] = value if isinstance(value, tuple) else (value,)
            self.names += hosts
            return len(hosts)
        return self.of(value)


class _Names:
    """Numbers in place of the devices, hosts, events and flags of a window."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices = {device: place for place, device in enumerate(devices)}
        self._seen: dict[Hashable, int] = {}

    def of(self, described: _Description) -> Hashable:
        """An operation without the names that windows differ by."""
        devices = tuple([self._devices[device] for device in described.devices])
        return described.form, devices, tuple([self._name(name) for name in described.names])

    def _name(self, name: Hashable) -> tuple[int, int]:
        device = self._devices.get(name.device, -1) if isinstance(name, Event | Flag) else -1
        return device, self._seen.setdefault(name, len(self._seen))


def _seen_from(origin: Index, box: Box) -> Hashable:
    """A box relative to a cell; all empty boxes are equal."""
    if box.empty:
        return None
    lo = tuple([a - o for a, o in zip(box.lo, origin, strict=True)])
    return lo, box.shape
