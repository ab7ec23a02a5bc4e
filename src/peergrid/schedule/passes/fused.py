"""The exchange fused into kernels: tile classes of a pass in queues of their own, ordered by flags between neighbours.

Devices own slabs along axis 0. The tiles at an end of a slab are its *boundary tiles* there: they await the neighbour's
flag, compute, store the halo into the neighbour's ghost cells and signal. All others compute the interior. Each class
stands for its tiles: what a tile reads, writes, awaits and signals is part of what its class does, cell by cell.

One flag says both that ghost cells may be read and that they may be overwritten, since a boundary tile signals after it
has read its own ghost cells and stored those of its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from peergrid.grid import Box
from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    Op,
    Queue,
    Record,
    SignalOp,
    SignalWait,
    Wait,
)
from peergrid.stencil import boundary_depth

LOW, HIGH = 0, 1
NAMES = ("low", "high")


def fuse_exchange(layout: Layout, schedule: Schedule) -> Schedule:
    """Replace each pass of a device by kernels with fused exchange; the next launch waits for all of them."""
    return replace(schedule, ops=tuple(_Fusion(layout, schedule).launched()))


def fuse_steps(layout: Layout, schedule: Schedule) -> Schedule:
    """Replace all passes of a device by one kernel with a barrier of its blocks between passes, at which blocks arrive
    before they store halos.
    """
    return replace(schedule, ops=tuple(_Fusion(layout, schedule, " of many passes").resident()))


def neighbour(layout: Layout, device: int, side: int) -> tuple[int, int] | None:
    """The device on that side, and the rows by which the grid's coordinates there are shifted."""
    other = device + (1 if side else -1)
    around, other = divmod(other, layout.devices)
    if around and not layout.problem.grid.periodic[0]:
        return None
    return other, -around * layout.problem.grid.shape[0]


def halo_flag(device: int, side: int, source: int, of: str = "") -> Flag:
    """The flag that the neighbour on a side of a device sets when its boundary tiles have made a pass; of: the kind of
    kernels, as one run may have both kinds, with different numbers of tiles.
    """
    return Flag(device, f"halo from {source} at the {NAMES[side]} end{of}")


def end_queue(device: int, side: int) -> Queue:
    """The boundary tiles at an end of a device's slab."""
    return Queue(device, NAMES[side], -1)


@dataclass(frozen=True)
class _Fusion:
    """The passes of a schedule in which every exchange interval is one pass over slabs; of: as in `halo_flag`."""

    layout: Layout
    schedule: Schedule
    of: str = ""

    def launched(self) -> Iterator[Op]:
        for number, part in enumerate(self.schedule.passes):
            for device in range(self.layout.devices):
                for side in self._sides(device):
                    queue = end_queue(device, side)
                    yield from self._computed(device, side, number, part)
                    yield from self._stored(queue, device, side, number, part)
                yield from self._inner(device, part)
                queues = self._queues(device)
                if len(queues) > 1:
                    yield DeviceBarrier(queues, (0,))

    def resident(self) -> Iterator[Op]:
        for number, part in enumerate(self.schedule.passes):
            for device in range(self.layout.devices):
                for side in self._sides(device):
                    yield from self._computed(device, side, number, part)
                yield from self._inner(device, part)
                yield from self._met(device)
                for side in self._sides(device):
                    queue = Queue(device, f"{NAMES[side]} halo")
                    yield Wait(0, queue, _arrival(end_queue(device, side)))
                    yield from self._stored(queue, device, side, number, part)
                    yield Record(0, device, queue, _arrival(queue))

    def _computed(self, device: int, side: int, number: int, part: Compute) -> Iterator[Op]:
        """The boundary tiles, after the neighbour's have made the pass before."""
        queue = end_queue(device, side)
        yield SignalWait(0, queue, halo_flag(device, side, self._beyond(device, side), self.of), number)
        yield replace(part, host=0, device=device, queue=queue, box=self._end(device, side))

    def _stored(self, queue: Queue, device: int, side: int, number: int, part: Compute) -> Iterator[Op]:
        """The stores of the rows that the neighbour needs, and the signal after them."""
        for copy in self._copies.get((part.level + part.steps, device, side), ()):
            yield replace(copy, host=0, queue=queue, route="store")
        yield SignalOp(0, queue, halo_flag(self._beyond(device, side), 1 - side, device, self.of), number + 1)

    def _inner(self, device: int, part: Compute) -> Iterator[Op]:
        box = self.layout.partition.owned(device)
        for side in self._sides(device):
            box = next(iter(box - self._end(device, side)), Box(box.lo, box.lo))
        if not box.empty:
            yield replace(part, host=0, device=device, queue=Queue(device, "interior"), box=box)

    def _met(self, device: int) -> Iterator[Op]:
        """The barrier of a device's blocks: each arrives when its tiles are computed and its halos of the pass before
        are stored.
        """
        queues = self._queues(device)
        yield from (Record(0, device, queue, _arrival(queue)) for queue in queues)
        for queue in queues:
            yield from (Wait(0, queue, _arrival(other)) for other in queues if other != queue)
            yield from (Wait(0, queue, _arrival(Queue(device, f"{NAMES[side]} halo"))) for side in self._sides(device))

    def _queues(self, device: int) -> tuple[Queue, ...]:
        """Those in which a device computes."""
        return (*(end_queue(device, side) for side in self._sides(device)), Queue(device, "interior"))

    def _sides(self, device: int) -> tuple[int, ...]:
        return tuple(side for side in (LOW, HIGH) if neighbour(self.layout, device, side) is not None)

    def _beyond(self, device: int, side: int) -> int:
        """The neighbour on a side."""
        found = neighbour(self.layout, device, side)
        assert found is not None, "only ends with a neighbour have boundary tiles"
        return found[0]

    def _end(self, device: int, side: int) -> Box:
        """The cells at an end of a slab that need cells of the neighbour, or that the neighbour needs."""
        owned, rows = self.layout.partition.owned(device), self._depth
        if side == HIGH:
            return owned.with_axis(0, owned.hi[0] - rows, owned.hi[0])
        return owned.with_axis(0, owned.lo[0], owned.lo[0] + rows)

    @cached_property
    def _depth(self) -> int:
        return boundary_depth(self.layout.problem, self.schedule.passes[0].steps)

    @cached_property
    def _copies(self) -> dict[tuple[int, int, int], list[Copy]]:
        """The copies of halos by their level, the device that they come from, and the end of its slab."""
        found: dict[tuple[int, int, int], list[Copy]] = {}
        for op in self.schedule.ops:
            if isinstance(op, Copy):
                below = op.target_box.hi[0] <= self.layout.partition.owned(op.target_device).lo[0]
                found.setdefault((op.level, op.source_device, HIGH if below else LOW), []).append(op)
        return found


def _arrival(queue: Queue) -> Event:
    return Event(queue.device, f"{queue.name} came")
