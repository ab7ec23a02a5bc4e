"""A three-point stencil on two devices, and the pieces to arrange it rightly or wrongly by hand."""

from __future__ import annotations

from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.schedule import Layout, Options, Schedule
from peergrid.schedule.ops import Compute, Copy, Op, Queue
from peergrid.stencil import Problem, stencil

MAIN = (Queue(0, "main"), Queue(1, "main"))
OWNED = (Box((0,), (4,)), Box((4,), (8,)))


@stencil
def smooth(u):  # type: ignore[no-untyped-def]
    u.next[0] = 0.25 * (u[-1] + 2 * u[0] + u[1])


def two_devices() -> Layout:
    """Eight cells in one line, four on each device, one ghost cell each."""
    grid = Grid(8)
    return Layout(Problem.of(smooth(grid.field("u"))), Partition(grid, (2,)), (1,))


def compute(device: int, level: int = 0, *, queue: Queue | None = None, host: int = 0) -> Compute:
    """A step of one device; slots alternate with the level."""
    return Compute(host, device, queue or MAIN[device], OWNED[device], level, 1, level % 2, 1 - level % 2)


def halo(source: int, level: int, *, queue: Queue | None = None, host: int = 0) -> Copy:
    """The ghost cell that the source owns, at a level, to the other device."""
    box = Box((3,), (4,)) if source == 0 else Box((4,), (5,))
    return Copy(host, queue or MAIN[source], "u", level % 2, level, source, box, 1 - source, box)


def schedule(*ops: Op, steps: int = 1, first: int = 0) -> Schedule:
    """The operations as a schedule of so many steps."""
    return Schedule(Options(), 2, steps, first, (first + steps) % 2, ops)
