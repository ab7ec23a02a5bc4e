"""The cells on which an update or a reduction is computed: those of the user's box whose reads all find values.

`what` names the update or reduction in messages, as in "Update 'heat'"; `nothing` is the consequence of an empty box.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from peergrid.arguments import brief, whole
from peergrid.errors import UsageError
from peergrid.grid import Box, Field, Grid
from peergrid.stencil.expr import Read


def confined(what: str, nothing: str, box: Box, given: object) -> Box:
    """The part of a box inside the given one. Raises UsageError if it is empty."""
    if not isinstance(given, Box):
        noun = "An update" if what.startswith("Update") else "A reduction"
        raise UsageError(f"{noun} is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got {brief(given)}.")
    lo, hi = whole(given.lo), whole(given.hi)
    if lo is None or hi is None or len(lo) != box.ndim:
        raise UsageError(f"{what} takes a box with {box.ndim} whole numbers for each corner, got {brief(given)}.")
    inside = box & Box(lo, hi)
    if inside.empty:
        raise UsageError(f"{what} is confined to {given}, which has no cell of {box}: {nothing}.")
    return inside


def answerable(
    what: str, nothing: str, box: Box, reads: Iterable[Read], grid: Grid, fields: Mapping[str, Field]
) -> Box:
    """The cells of a box from which no read leaves the grid through a fixed edge."""
    reads, box = tuple(reads), box & grid.box
    for axis in range(grid.ndim):
        if grid.boundary[axis] == "fixed":
            (below, above), extent = _reach(reads, axis, fields), grid.shape[axis]
            if below + above >= extent:
                raise UsageError(
                    f"{what} reads {below} below and {above} above its cell along the fixed axis {axis}, which has "
                    f"{extent}: {nothing}; use a larger grid or another boundary."
                )
            lo, hi = max(box.lo[axis], below), min(box.hi[axis], extent - above)
            box = box.with_axis(axis, lo, max(lo, hi))
    return box


def check_reads(what: str, box: Box, reads: Iterable[Read], grid: Grid, fields: Mapping[str, Field]) -> None:
    """Raise UsageError if cells of a box read a field outside its box."""
    for read in reads:
        source, seen = fields[read.field], box.shift(read.offset)
        for axis in source.axes:
            if grid.boundary[axis] != "fixed" and abs(read.offset[axis]) > grid.shape[axis]:
                raise UsageError(
                    f"{what} reads '{read.field}' {abs(read.offset[axis])} cells away along axis {axis}, which "
                    f"has only {grid.shape[axis]}; use a larger grid."
                )
        confining = [axis for axis in source.axes if not grid.periodic[axis]]
        for cells, axis in product(grid.folded(seen), confining):
            if cells.lo[axis] < source.box.lo[axis] or cells.hi[axis] > source.box.hi[axis]:
                raise UsageError(
                    f"{what} reads '{read.field}' at offset {read.offset} from {box}, outside the field's box "
                    f"{source.box}; confine the {what.split()[0].lower()} with .within(box)."
                )


def _reach(reads: Iterable[Read], axis: int, fields: Mapping[str, Field]) -> tuple[int, int]:
    """The number of cells below and above its own that a cell reads along an axis."""
    offsets = [0, *(read.offset[axis] for read in reads if axis in fields[read.field].axes)]
    return -min(offsets), max(offsets)
