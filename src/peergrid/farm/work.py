"""The loop of a farm: free slots take jobs, ended jobs free their slots."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import TextIO

from peergrid.farm.folder import Done, FarmFolder
from peergrid.farm.jobs import Job
from peergrid.farm.process import Running, start, stop_all
from peergrid.farm.queue import JobQueue
from peergrid.farm.slots import JobSlot

LOOK_EVERY = 0.2  # the longest time (s) to notice a request to stop, or the end of an earlier farm's job
GRACE = 10.0  # seconds between SIGTERM and SIGKILL


def work(
    jobs: Sequence[Job],
    slots: Sequence[JobSlot],
    queue: JobQueue,
    folder: FarmFolder,
    requests: Callable[[], int] = lambda: 0,
    report: Callable[[JobQueue], None] = lambda queue: None,
) -> JobQueue:
    """Run jobs until none is left or the user asks to stop: after one request running jobs may end, after two they are
    ended. report: called after each change.

    Returns:
        the queue at the end.
    """
    by_number = {job.number: job for job in jobs}
    running = {slot: Running(job, time.time()) for slot, job in enumerate(queue.running) if job is not None}
    with folder.journal() as journal:
        while not queue.finished:
            for slot in range(len(slots)):
                queue, job = queue.start(slot)
                if job is not None:
                    _write(journal, event="start", job=job, slot=slots[slot].name, time=time.time())
                    running[slot] = start(by_number[job], slots[slot], folder)
            report(queue)
            wait([one.watched for one in running.values() if one.watched is not None], LOOK_EVERY)
            if requests() and not queue.draining:
                queue = queue.drain()
            if requests() > 1:
                stop_all(list(running.values()), GRACE)
                return _stopped(queue, running, journal)
            for slot in [slot for slot, one in running.items() if one.ended(folder)]:
                queue = _ended(queue, slot, running.pop(slot), folder, journal)
    report(queue)
    return queue


def adopted(found: Done, slots: Sequence[JobSlot]) -> tuple[dict[int, int], tuple[int, ...]]:
    """The jobs of an earlier farm that still run: slot → job for those whose slot exists here, and the others."""
    by_name = {slot.name: number for number, slot in enumerate(slots)}
    there = {by_name[name]: job for job, name in found.running.items() if name in by_name}
    return there, tuple(job for job in found.running if job not in there.values())


def _ended(queue: JobQueue, slot: int, one: Running, folder: FarmFolder, journal: TextIO) -> JobQueue:
    one.close()
    code = folder.exit_code(one.job)  # None: its `sh` was killed
    _write(journal, event="end", job=one.job, code=code, seconds=round(time.time() - one.started, 3))
    return queue.end(slot, code == 0)


def _stopped(queue: JobQueue, running: dict[int, Running], journal: TextIO) -> JobQueue:
    """The queue with all running jobs of this farm put back; those of an earlier farm continue."""
    for slot, one in running.items():
        one.close()
        if one.process is not None:
            _write(journal, event="stop", job=one.job)
        queue = queue.put_back(slot)
    return queue


def _write(journal: TextIO, **entry: str | float | None) -> None:
    journal.write(json.dumps(entry) + "\n")
