"""The declared accesses of some schedules' operations, computed once for all programs of these operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from peergrid.grid import Box
from peergrid.schedule.access import Access, Buffer, Reads, accesses, declared
from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Touching, Transfer, access_key
from peergrid.schedule.out_of_bounds import belongs, fits
from peergrid.schedule.planes import Cells, Planes
from peergrid.stencil import write_box

Use = int
"""A number that operations share which touch the same memory."""

BufferBoxes = tuple[tuple[Buffer, Box], ...]


@dataclass(frozen=True, eq=False)
class CellSets:
    """The cells that are read, at the level or one step before it, and those that are written."""

    reads: Cells
    previous: Cells
    writes: Cells


class AccessTable:
    """The accesses of computations and copies, their cells, and their conflicts.

    use: of every operation by its identity, `id(op)`, under which `accesses`, `conflicts` and `cell_sets` know it.
    devices: those whose memory is checked, by default all.
    """

    def __init__(
        self,
        layout: Layout,
        schedules: Iterable[Schedule],
        reads: Reads = declared,
        devices: Iterable[int] | None = None,
    ) -> None:
        self.layout = layout
        self._devices = range(layout.devices) if devices is None else sorted(devices)
        self._ops = {id(op): op for each in schedules for op in each.ops if isinstance(op, Touching)}
        uses: dict[Hashable, Use] = {}
        self.use = {key: uses.setdefault(access_key(op), len(uses)) for key, op in self._ops.items()}
        first = {self.use[key]: op for key, op in reversed(self._ops.items())}
        self.accesses = tuple(accesses(layout, first[use], reads) for use in range(len(uses)))

    @cached_property
    def conflicts(self) -> tuple[frozenset[Use], ...]:
        """For every use the conflicting ones: those that access one of its cells, where one of the two writes it."""
        users: dict[Buffer, dict[Box, _Users]] = {}
        for use, some in enumerate(self.accesses):
            for access in some:
                of_box = users.setdefault(access.buffer, {}).setdefault(access.box, _Users())
                (of_box.writers if access.writes else of_box.readers).append(use)
        found: list[set[Use]] = [set() for _ in self.accesses]
        for boxes in users.values():
            for here, there in _overlapping(boxes):
                for use in here.writers:
                    found[use].update(there.writers, there.readers)
                for use in here.readers:
                    found[use].update(there.writers)
        return tuple(map(frozenset, found))

    @cached_property
    def out_of_bounds(self) -> frozenset[int]:
        """The identities of operations that access cells outside memory, or copy cells to wrong places."""
        layout = self.layout
        beyond = {use for use, some in enumerate(self.accesses) if not all(fits(layout, access) for access in some)}
        lost = {key for key, op in self._ops.items() if isinstance(op, Transfer) and not belongs(layout, op)}
        return frozenset(lost | {key for key, use in self.use.items() if use in beyond})

    @cached_property
    def in_place(self) -> frozenset[Use]:
        """The uses that write cells that they read."""
        return frozenset(use for use, some in enumerate(self.accesses) if any(True for _ in clashes(some)))

    @cached_property
    def planes(self) -> Planes:
        """All memory in compressed coordinates that resolve every access, and the cells at the start and at the end."""
        used = ((access.buffer, access.box) for some in self.accesses for access in some)
        return Planes.over([*used, *chain.from_iterable(self.allocated), *chain.from_iterable(self.owned)])

    @cached_property
    def cell_sets(self) -> tuple[CellSets, ...]:
        """The cells of every use."""
        return tuple(
            CellSets(
                self._cells(access for access in some if not access.writes and not access.previous),
                self._cells(access for access in some if access.previous),
                self._cells(access for access in some if access.writes),
            )
            for some in self.accesses
        )

    @cached_property
    def allocated(self) -> tuple[BufferBoxes, BufferBoxes]:
        """The boxes for which the devices have memory in each slot."""
        return self._everywhere(self.layout.local)

    @cached_property
    def owned(self) -> tuple[BufferBoxes, BufferBoxes]:
        """The cells that the devices must have in each slot at the end: those that they own."""
        problem, partition = self.layout.problem, self.layout.partition
        return self._everywhere(lambda device, name: write_box(problem, name, partition.owned(device)))

    @cached_property
    def starts(self) -> tuple[Cells, ...]:
        """The cells that the devices hold in each slot."""
        return tuple(map(self.planes.cells, self.allocated))

    @cached_property
    def ends(self) -> tuple[Cells, ...]:
        """The cells that the devices own in each slot."""
        return tuple(map(self.planes.cells, self.owned))

    def _everywhere(self, box_of: Callable[[int, str], Box]) -> tuple[BufferBoxes, BufferBoxes]:
        pairs = ((d, name) for d in self._devices for name in self.layout.problem.state)
        boxes = [(d, name, box) for d, name in pairs if not (box := box_of(d, name)).empty]
        return tuple(((d, name, 0), box) for d, name, box in boxes), tuple(
            ((d, name, 1), box) for d, name, box in boxes
        )

    def _cells(self, some: Iterable[Access]) -> Cells:
        return self.planes.cells((access.buffer, access.box) for access in some)


def clashes(some: tuple[Access, ...]) -> Iterator[tuple[Access, Access]]:
    """The writes and reads of one operation that overlap."""
    buffers = {access.buffer for access in some if access.writes}
    reads = [access for access in some if not access.writes and access.buffer in buffers]
    for access in some:
        if access.writes:
            yield from ((access, r) for r in reads if r.buffer == access.buffer and r.box.overlaps(access.box))


@dataclass(slots=True)
class _Users:
    """The readers and the writers of a box."""

    readers: list[Use] = field(default_factory=list)
    writers: list[Use] = field(default_factory=list)


def _overlapping(boxes: Mapping[Box, _Users]) -> Iterator[tuple[_Users, _Users]]:
    """The users of every two boxes that overlap, both ways round; a box meets itself."""
    lo, hi = np.array([box.lo for box in boxes]), np.array([box.hi for box in boxes])
    inside = np.maximum(lo[:, np.newaxis], lo) < np.minimum(hi[:, np.newaxis], hi)
    users = list(boxes.values())
    for one, two in np.argwhere(inside.all(axis=2)).tolist():
        yield users[one], users[two]
