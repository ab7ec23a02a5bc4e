"""Copies of a device across its own periodic edges, replaced by kernels that read across these edges."""

from __future__ import annotations

from dataclasses import fields, replace

from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Compute, Copy, Op, WrappedCompute


def wrap_in_kernels(layout: Layout, schedule: Schedule) -> Schedule:
    """The schedule without copies along axes that are not split; its computations read those cells themselves."""
    wrapped = {(halo.field, halo.source_box, halo.target_box, halo.source) for halo in layout.wrapped}
    ops = (_wrapped(op) for op in schedule.ops if not (isinstance(op, Copy) and _place(op) in wrapped))
    return replace(schedule, ops=tuple(ops))


def _place(op: Copy) -> tuple[object, ...]:
    """The marks of a halo: -1 where it goes to another device."""
    return (op.field, op.source_box, op.target_box, op.source_device if op.source_device == op.target_device else -1)


def _wrapped(op: Op) -> Op:
    if not isinstance(op, Compute):
        return op
    return WrappedCompute(**{one.name: getattr(op, one.name) for one in fields(op)})
