"""Schedules one after another, as one list with levels and flag values counted from the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import Flag, Op, Receive, Send, SignalOp, SignalWait, describe


class Placed(NamedTuple):
    """One operation of one iteration; base: the level at its start; flags: the values of the flags at its start."""

    op: Op
    iteration: int
    number: int
    base: int
    flags: Mapping[Flag, int]

    @property
    def value(self) -> int:
        """The value that a SignalOp sets or a SignalWait expects."""
        assert isinstance(self.op, SignalOp | SignalWait)
        return self.flags.get(self.op.flag, 0) + self.op.value

    def __str__(self) -> str:
        return f"{describe(self.op)} (iteration {self.iteration}, op {self.number})"


def unroll(iterations: Iterable[Schedule]) -> Iterator[Placed]:
    """Every operation of every iteration, in the order of the lists."""
    base, flags = 0, dict[Flag, int]()
    for iteration, schedule in enumerate(iterations):
        for number, op in enumerate(schedule.ops):
            yield Placed(op, iteration, number, base, flags)
        base += schedule.steps
        flags = advanced(flags, schedule)


def advanced(flags: Mapping[Flag, int], schedule: Schedule) -> dict[Flag, int]:
    """The values of the flags after a schedule; they grow from iteration to iteration."""
    spans = flag_spans(schedule.ops)
    return {flag: flags.get(flag, 0) + spans.get(flag, 0) for flag in flags.keys() | spans.keys()}


def increments(schedule: Schedule) -> dict[Flag, int]:
    """The number by which each flag rises in one iteration."""
    counts: dict[Flag, int] = {}
    for op in schedule.ops:
        if isinstance(op, SignalOp):
            counts[op.flag] = max(counts.get(op.flag, 0), op.value)
    return counts


def flag_spans(ops: Iterable[Op]) -> Mapping[Flag, int]:
    """The count of each flag within a list of operations: the largest value that is set or awaited."""
    spans: dict[Flag, int] = {}
    for op in ops:
        if isinstance(op, SignalOp | SignalWait):
            spans[op.flag] = max(spans.get(op.flag, 0), op.value)
    return spans


def same_message(sent: Placed, received: Placed) -> bool:
    """True for two operations that are the halves of one copy."""
    one, two = sent.op, received.op
    assert isinstance(one, Send)
    assert isinstance(two, Receive)
    cells = (one.field, one.source_device, one.source_box, one.target_device, one.target_box)
    alike = cells == (two.field, two.source_device, two.source_box, two.target_device, two.target_box)
    return alike and sent.base + one.level == received.base + two.level
