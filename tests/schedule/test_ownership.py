"""Who may issue what where: kernels and events belong to the current device, waiting is free to all.

The five examples are the classical ones of streams and events on two devices, A = 0 and B = 1.
"""

from __future__ import annotations

import pytest

from peergrid.errors import UsageError
from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.schedule import Layout, Options, Schedule
from peergrid.schedule.happens_before import happens_before
from peergrid.schedule.ops import Compute, Copy, Event, Flag, Op, Queue, Record, SignalOp, SignalWait, Sync, Wait
from peergrid.schedule.unroll import unroll
from peergrid.schedule.verify import prove
from peergrid.stencil import Problem, stencil

A, B = Queue(0, "A"), Queue(1, "B")
EVENT_A, EVENT_B = Event(0, "A"), Event(1, "B")


def kernel(device: int, queue: Queue) -> Compute:
    return Compute(0, device, queue, Box((0,), (4,)), 0, 1, 0, 1)


def runs(*ops: Op) -> bool:
    schedule = Schedule(Options(), 2, 1, 0, 1, ops)
    order = happens_before(unroll([schedule]))
    return not order.faults


def test_1_kernel_event_and_queue_of_the_current_device() -> None:
    assert runs(kernel(1, B), Record(0, 1, B, EVENT_B), Sync(0, EVENT_B))


def test_2_a_kernel_into_a_queue_of_another_device_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        kernel(1, A)
    assert str(refused.value) == (
        "A kernel can be launched only into a queue of the current device: device 1 is current, "
        "queue 'A' belongs to device 0; make that device current first."
    )


def test_3_an_event_of_another_device_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Record(0, 1, B, EVENT_A)
    assert str(refused.value) == (
        "An event can be recorded only into a queue of its own device: event 'A' belongs to device 0, "
        "queue 'B' to device 1; use an event of device 1."
    )


def test_3_an_event_recorded_while_another_device_is_current_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Record(0, 1, A, EVENT_A)
    assert str(refused.value) == (
        "An event can be recorded only while its queue's device is current: device 1 is current, "
        "queue 'A' belongs to device 0; make that device current first."
    )


def test_4_a_host_may_wait_for_any_event_before_it_goes_on_elsewhere() -> None:
    ops = (kernel(1, B), Record(0, 1, B, EVENT_B), Sync(0, EVENT_B), kernel(0, A))
    order = happens_before(unroll([Schedule(Options(), 2, 1, 0, 1, ops)]))
    names = [type(placed.op).__name__ for placed in order.done]
    assert names == ["Compute", "Record", "Compute"]
    assert order.before[2] & order.bits[0], "the second kernel comes after the first"


def test_4_a_queue_may_wait_for_an_event_of_any_device() -> None:
    ops = (kernel(1, B), Record(0, 1, B, EVENT_B), Wait(0, A, EVENT_B), kernel(0, A))
    order = happens_before(unroll([Schedule(Options(), 2, 1, 0, 1, ops)]))
    last = next(i for i, placed in enumerate(order.done) if placed.op == kernel(0, A))
    first = next(i for i, placed in enumerate(order.done) if placed.op == kernel(1, B))
    assert order.before[last] & order.bits[first]


def test_5_a_queue_may_copy_what_lies_on_another_device() -> None:
    @stencil
    def stay(u):  # type: ignore[no-untyped-def]
        u.next[0] = u[-1]

    grid = Grid(8)
    plan = Layout(Problem.of(stay(grid.field("u"))), Partition(grid, (2,)), (1,))
    (halo,) = plan.halos
    assert (halo.source, halo.target) == (0, 1)
    pull = Copy(0, B, "u", 0, 0, 0, halo.source_box, 1, halo.target_box)
    found = prove(plan, [Schedule(Options(), 2, 0, 0, 0, (pull,))])
    assert found.holds, found.faults


@pytest.mark.parametrize("kind", [Queue, Event, Flag])
def test_a_negative_device_is_refused(kind: type) -> None:
    with pytest.raises(UsageError, match=r"^Devices are numbered from 0, got -1\.$"):
        kind(-1, "A")


@pytest.mark.parametrize(("source", "target"), [(-1, 0), (0, -1)])
def test_a_copy_from_or_to_a_negative_device_is_refused(source: int, target: int) -> None:
    box = Box((0,), (4,))
    with pytest.raises(UsageError, match=r"^Devices are numbered from 0, got -1\.$"):
        Copy(0, A, "u", 0, 0, source, box, target, box)


@pytest.mark.parametrize(("kind", "value"), [(SignalOp, 0), (SignalOp, -1), (SignalWait, -1)])
def test_a_flag_that_is_there_from_the_start_is_refused(kind: type, value: int) -> None:
    """Flags are 0 at first: who sets that says nothing, and who awaits less waits for nobody in any iteration."""
    with pytest.raises(UsageError, match="awaited at 0 or more"):
        kind(0, A, Flag(0, "f"), value)
