"""Each way a schedule can be wrong, found by both checkers, and the sentence that names it."""

from __future__ import annotations

from dataclasses import replace

from verify_examples import MAIN, compute, halo, schedule, two_devices

from peergrid.grid import Box
from peergrid.runtime.trace.judge import check
from peergrid.schedule.faults import count
from peergrid.schedule.ops import (
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Record,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
)
from peergrid.schedule.verify import prove

BARRIER = DeviceBarrier(MAIN, (0,))
ASIDE = Queue(1, "aside")
RIGHT = (compute(0), compute(1), BARRIER, halo(0, 1), halo(1, 1), BARRIER)


def message(*ops: Op, steps: int = 1, kind: str | None = None) -> str:
    """The only fault of one iteration, which the trace checker finds too."""
    plan, iterations = two_devices(), (schedule(*ops, steps=steps),)
    found = prove(plan, iterations).faults
    traced = check(plan, iterations)
    assert found, "the static proof holds"
    assert traced, "the trace checker finds nothing"
    if kind is not None:
        assert count(found)[kind]  # type: ignore[index]
        assert count(traced)[kind]  # type: ignore[index]
    return str(found[0])


def test_the_right_schedule_is_accepted() -> None:
    plan = two_devices()
    iterations = (schedule(*RIGHT), schedule(*RIGHT, compute(0), first=1))
    assert not prove(plan, iterations[:1]).faults
    assert not check(plan, iterations[:1])


def test_a_copy_that_nothing_keeps_from_its_source_is_a_race() -> None:
    early = halo(1, 1, queue=ASIDE)
    assert message(compute(0), compute(1), early, kind="race") == (
        "Race on 'u' slot 1 of device 1 in [4,5): nothing makes Copy 'u' 1:[4,5)→0:[4,5) slot 1 level 1 in 1:aside "
        "(iteration 0, op 2) wait for Compute [4,8) steps 0→1 slot 0→1 in 1:main (iteration 0, op 1)."
    )


def test_a_wait_for_an_event_that_was_never_recorded_orders_nothing_and_is_named() -> None:
    found = message(compute(0), compute(1), Wait(0, ASIDE, Event(1, "done")), halo(1, 1, queue=ASIDE), kind="race")
    assert found.endswith(
        "; Wait event 1:done in 1:aside (iteration 0, op 2) waits for an event that was never recorded."
    )


def test_a_wait_is_bound_to_the_record_before_it_and_not_to_a_later_one() -> None:
    done = Event(1, "done")
    record, wait = Record(0, 1, MAIN[1], done), Wait(0, ASIDE, done)
    right = (compute(0), compute(1), record, wait, halo(1, 1, queue=ASIDE))
    assert not prove(two_devices(), (schedule(*right),)).faults
    assert message(compute(0), record, compute(1), wait, halo(1, 1, queue=ASIDE)).startswith("Race on 'u' slot 1")
    assert message(compute(0), compute(1), wait, record, halo(1, 1, queue=ASIDE)).startswith("Race on 'u' slot 1")


def test_a_ghost_cell_one_step_old_is_stale_even_without_a_race() -> None:
    ops = (compute(0), compute(1), BARRIER, halo(0, 1), BARRIER, compute(0, 1), compute(1, 1))
    assert message(*ops, steps=2, kind="stale read") == (
        "Stale read: Compute [0,4) steps 1→2 slot 1→0 in 0:main (iteration 0, op 5) needs 'u' slot 1 of device 0 at "
        "level 1 in [4,5), it finds nothing that was ever written."
    )
    old = (*RIGHT, compute(0, 1), compute(1, 1), BARRIER, halo(0, 2), BARRIER, compute(0, 2), compute(1, 2))
    assert message(*old, steps=3, kind="stale read").endswith("at level 2 in [4,5), it finds level 0.")


def test_what_a_device_owns_must_be_there_at_the_end() -> None:
    assert message(compute(0), kind="stale read") == (
        "Stale read: at the end 'u' slot 1 of device 1 is needed at level 1 in [4,8), it is nothing that was ever "
        "written."
    )


def test_a_copy_to_where_the_cells_do_not_belong_is_refused() -> None:
    wrong = replace(halo(0, 1), source_box=Box((2,), (3,)))
    assert message(compute(0), compute(1), BARRIER, wrong, BARRIER, kind="stale read") == (
        "Stale read: Copy 'u' 0:[2,3)→1:[3,4) slot 1 level 1 in 0:main (iteration 0, op 3) needs the cells [3,4) of "
        "'u', it brings [2,3)."
    )


def test_an_access_beyond_the_memory_of_a_device_is_refused() -> None:
    wide = replace(compute(0), box=Box((0,), (5,)))
    assert message(wide, compute(1), kind="outside") == (
        "Outside: Compute [0,5) steps 0→1 slot 0→1 in 0:main (iteration 0, op 0) reads 'u' slot 0 of device 0 in "
        "[0,6), the device holds [0,5)."
    )


def test_an_await_that_nobody_answers_is_a_deadlock() -> None:
    flag = Flag(1, "halo")
    ops = (compute(0), SignalOp(0, MAIN[0], flag, 1), SignalWait(0, MAIN[1], flag, 2), compute(1))
    assert message(*ops, kind="deadlock") == (
        "Deadlock: queue 1:main never gets past SignalWait flag 1:halo = 2 in 1:main (iteration 0, op 2): flag 1:halo "
        "never reaches 2, the last signal that runs leaves it at 1."
    )


def test_queues_that_wait_for_each_other_are_a_deadlock() -> None:
    to_0, to_1 = Flag(0, "go"), Flag(1, "go")
    ops = (
        *(SignalWait(0, MAIN[0], to_0, 1), SignalOp(0, MAIN[0], to_1, 1)),
        *(SignalWait(0, MAIN[1], to_1, 1), SignalOp(0, MAIN[1], to_0, 1)),
    )
    plan, iterations = two_devices(), (schedule(*ops),)
    assert count(prove(plan, iterations).faults)["deadlock"] == 2
    assert count(check(plan, iterations))["deadlock"] == 2


def test_a_barrier_that_a_host_never_reaches_is_a_deadlock() -> None:
    flag = Flag(1, "never")
    ops = (SignalWait(1, MAIN[1], flag, 1), Sync(1, MAIN[1]), HostBarrier((0, 1)))
    plan, iterations = two_devices(), (schedule(*ops),)
    found = [str(fault) for fault in prove(plan, iterations).faults]
    assert (
        "Deadlock: host 0 never gets past HostBarrier of hosts 0, 1 (iteration 0, op 2): it is never reached by 1."
        in found
    )
    assert count(check(plan, iterations))["deadlock"]


def test_two_hosts_feeding_one_queue_unordered_are_refused() -> None:
    found = message(compute(0), compute(1), halo(1, 1, queue=MAIN[1], host=1), kind="undetermined")
    assert found == (
        "Not determined: queue 1:main is handed Compute [4,8) steps 0→1 slot 0→1 in 1:main (iteration 0, op 1) and "
        "Copy 'u' 1:[4,5)→0:[4,5) slot 1 level 1 in 1:main (iteration 0, op 2), which nothing orders; "
        "let a barrier or a Sync order their hosts."
    )


def test_a_wait_whose_record_another_host_may_not_have_issued_yet_is_refused() -> None:
    done = Event(1, "done")
    ops = (Record(1, 1, MAIN[1], done), Wait(0, MAIN[0], done))
    assert message(*ops, kind="undetermined").startswith("Not determined: event 1:done is used by Record")
    assert message(*reversed(ops), kind="undetermined").startswith("Not determined: event 1:done is used by")
    ordered = (compute(1, host=1), ops[0], HostBarrier((0, 1)), compute(0), ops[1])
    assert not prove(two_devices(), (schedule(*ordered),)).faults
    assert not check(two_devices(), (schedule(*ordered),))


def test_a_host_barrier_alone_does_not_wait_for_queues() -> None:
    def ops(*between: Op) -> tuple[Op, ...]:
        return (compute(0), compute(1, host=1), *between, HostBarrier((0, 1)), halo(1, 1, queue=MAIN[0]))

    assert message(*ops(), kind="race").startswith("Race on 'u' slot 1 of device 1")
    assert not prove(two_devices(), (schedule(*ops(Sync(1, MAIN[1]))),)).faults


def test_a_flag_that_does_not_grow_is_refused() -> None:
    flag = Flag(1, "halo")
    ops = (SignalOp(0, MAIN[0], flag, 2), SignalOp(0, MAIN[0], flag, 1))
    assert message(*ops, kind="undetermined").startswith("Flag 1:halo does not grow: SignalOp flag 1:halo = 1")


def test_a_computation_in_place_races_with_itself() -> None:
    found = message(replace(compute(0), target=0), compute(1), kind="race")
    assert found.endswith("reads there what it writes itself.")


def test_a_barrier_of_nobody_keeps_nobody() -> None:
    empty = (DeviceBarrier((), (0,)), HostBarrier(()))
    plan, iterations = two_devices(), (schedule(compute(0), *empty, compute(1)),)
    assert not prove(plan, iterations).faults
    assert not check(plan, iterations)
