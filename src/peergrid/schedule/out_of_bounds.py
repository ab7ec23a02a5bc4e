"""Operations that are wrong in any order: they access cells outside a device's memory, or copy cells to wrong
places.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.schedule.access import Access
from peergrid.schedule.faults import Fault
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Transfer
from peergrid.schedule.unroll import Placed


def outside(layout: Layout, placed: Placed, some: tuple[Access, ...]) -> Iterator[Fault]:
    """Accesses to cells that the device has no memory for."""
    for access in some:
        device, name, slot = access.buffer
        if not fits(layout, access):
            known = 0 <= device < layout.devices and slot in (0, 1)
            message = (
                f"Outside: {placed} {'writes' if access.writes else 'reads'} '{name}' slot {slot} of device {device} "
                f"in {access.box}, the device holds {layout.local(device, name) if known else 'no such slot'}."
            )
            yield Fault("outside", message, (placed.op,))


def misplaced(layout: Layout, placed: Placed) -> Iterator[Fault]:
    """Copies whose target cells are neither the source cells nor their images across a periodic edge."""
    op = placed.op
    if isinstance(op, Transfer) and not belongs(layout, op):
        message = f"Stale read: {placed} needs the cells {op.target_box} of '{op.field}', it brings {op.source_box}."
        yield Fault("stale read", message, (op,))


def fits(layout: Layout, access: Access) -> bool:
    """True if the device has memory for an access."""
    device, name, slot = access.buffer
    return 0 <= device < layout.devices and slot in (0, 1) and layout.local(device, name).covers(access.box)


def belongs(layout: Layout, op: Transfer) -> bool:
    """True if the target cells of a copy are the source cells, or their images across a periodic edge."""
    grid = layout.problem.grid
    moves = (t - s for s, t in zip(op.source_box.lo, op.target_box.lo, strict=True))
    axes = zip(moves, grid.shape, grid.periodic, strict=True)
    return op.source_box.empty or not any(move % extent if wraps else move for move, extent, wraps in axes)
