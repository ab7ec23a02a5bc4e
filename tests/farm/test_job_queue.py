"""The order of jobs: none lost, none twice, no slot idle while a job waits, whatever ends in whatever order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from peergrid.farm import JobQueue


def fill(queue: JobQueue, started: Counter[int]) -> JobQueue:
    """All slots that can take a job take one."""
    for slot in range(len(queue.running)):
        queue, job = queue.start(slot)
        if job is not None:
            started[job] += 1
    return queue


@given(
    jobs=st.integers(0, 30),
    slots=st.integers(1, 6),
    retries=st.integers(0, 3),
    bad=st.sets(st.integers(0, 29)),
    flaky=st.sets(st.integers(0, 29)),
    data=st.data(),
)
def test_every_job_ends_once(
    jobs: int, slots: int, retries: int, bad: set[int], flaky: set[int], data: st.DataObject
) -> None:
    started: Counter[int] = Counter()
    ended_well: list[int] = []
    queue = fill(JobQueue.of(range(jobs), slots, retries), started)
    while not queue.finished:
        assert queue.busy == min(slots, queue.busy + len(queue.waiting)), "a slot is idle while a job waits"
        assert len({job for job in queue.running if job is not None}) == queue.busy
        slot = data.draw(st.sampled_from([k for k, job in enumerate(queue.running) if job is not None]))
        job = queue.running[slot]
        well = job not in bad and not (job in flaky and started[job] == 1)
        ended_well += [job] * well
        queue = fill(queue.end(slot, well), started)
    first_fails = (flaky if retries == 0 else set()) | bad
    assert sorted(ended_well) == [job for job in range(jobs) if job not in first_fails]
    assert sorted(queue.failed) == [job for job in range(jobs) if job in first_fails]
    assert queue.done == len(ended_well)
    assert all(
        started[job] == (retries + 1 if job in bad else 1 + (job in flaky and retries > 0)) for job in range(jobs)
    )


@given(jobs=st.integers(1, 20), slots=st.integers(1, 5), ended=st.integers(0, 20), stopped=st.booleans())
def test_what_is_not_done_is_left(jobs: int, slots: int, ended: int, stopped: bool) -> None:
    """After a request to drain nothing starts; jobs that are ended then wait again."""
    queue = fill(JobQueue.of(range(jobs), slots), Counter())
    done: set[int | None] = set()
    for _ in range(min(ended, jobs)):
        slot = next(k for k, job in enumerate(queue.running) if job is not None)
        done.add(queue.running[slot])
        queue = fill(queue.end(slot, True), Counter())
    queue = queue.drain()
    while queue.busy:
        slot = next(k for k, job in enumerate(queue.running) if job is not None)
        done |= set() if stopped else {queue.running[slot]}
        queue = queue.put_back(slot) if stopped else queue.end(slot, True)
        assert all(queue.start(slot)[1] is None for slot in range(slots))
    assert queue.finished
    assert queue.done == len(done)
    assert sorted(queue.waiting) == [job for job in range(jobs) if job not in done]


def test_adopted_jobs_hold_their_slots_and_are_not_started() -> None:
    queue = JobQueue.of([1, 2, 3, 4], 2, adopted={1: 3})
    started: Counter[int] = Counter()
    queue = fill(queue, started)
    assert queue.running == (1, 3)
    assert started == {1: 1}
    queue = fill(queue.end(1, True), started)
    assert queue.running == (1, 2)
    assert queue.waiting == (4,)


def test_a_failed_job_waits_behind_all_others() -> None:
    queue = fill(JobQueue.of([1, 2, 3], 1, retries=1), Counter())
    assert queue.end(0, False).waiting == (2, 3, 1)
