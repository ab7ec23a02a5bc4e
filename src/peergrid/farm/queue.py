"""The order of jobs: which wait, which run and on which slot. An immutable value; every change makes a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class JobQueue:
    """Jobs by their numbers. A free slot takes the next waiting job; a failed job waits again, behind all others.

    Attributes:
        order: jobs that were never started here, from `position` on.
        again: failed jobs that wait for another attempt.
        running: for each slot its job, or None.
        failures: attempts that failed, of the jobs that had any.
        retries: attempts that a job may have after the first.
        failed: jobs without attempts left; done: the number of those that ended well.
        draining: no more jobs are started.
    """

    order: tuple[int, ...]
    running: tuple[int | None, ...]
    retries: int = 0
    position: int = 0
    again: tuple[int, ...] = ()
    failures: Mapping[int, int] = field(default_factory=dict)
    failed: tuple[int, ...] = ()
    done: int = 0
    retried: int = 0
    draining: bool = False

    @staticmethod
    def of(jobs: Sequence[int], slots: int, retries: int = 0, adopted: Mapping[int, int] | None = None) -> JobQueue:
        """A queue in which all jobs wait except those that an earlier farm left running: `adopted`, slot → job."""
        there = adopted or {}
        order = tuple(job for job in jobs if job not in set(there.values()))
        return JobQueue(order, tuple(there.get(slot) for slot in range(slots)), retries)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The jobs that wait, the next first."""
        return self.order[self.position :] + self.again

    @property
    def busy(self) -> int:
        """The number of jobs that run."""
        return sum(job is not None for job in self.running)

    @property
    def finished(self) -> bool:
        """No job runs, and none is going to."""
        return not self.busy and (self.draining or (self.position == len(self.order) and not self.again))

    def start(self, slot: int) -> tuple[JobQueue, int | None]:
        """Start the next job on a slot, if the slot is free and a job waits."""
        if self.running[slot] is not None or self.draining:
            return self, None
        if self.position < len(self.order):
            job = self.order[self.position]
            return replace(self._with_job(slot, job), position=self.position + 1), job
        if self.again:
            job, *rest = self.again
            return replace(self._with_job(slot, job), again=tuple(rest), retried=self.retried + 1), job
        return self, None

    def end(self, slot: int, succeeded: bool) -> JobQueue:
        """The queue after the job of a slot has ended."""
        job, freed = self._freed(slot)
        if succeeded:
            return replace(freed, done=self.done + 1)
        failures = {**self.failures, job: self.failures.get(job, 0) + 1}
        if failures[job] > self.retries:
            return replace(freed, failures=failures, failed=(*self.failed, job))
        return replace(freed, failures=failures, again=(*self.again, job))

    def put_back(self, slot: int) -> JobQueue:
        """The queue after the farm ended the job of a slot: the job waits as if it had not been started."""
        job, freed = self._freed(slot)
        return replace(freed, again=(job, *self.again))

    def drain(self) -> JobQueue:
        """Start no more jobs; running ones continue."""
        return replace(self, draining=True)

    def _with_job(self, slot: int, job: int | None) -> JobQueue:
        return replace(self, running=(*self.running[:slot], job, *self.running[slot + 1 :]))

    def _freed(self, slot: int) -> tuple[int, JobQueue]:
        job = self.running[slot]
        if job is None:
            raise ValueError(f"slot {slot} runs no job")
        return job, self._with_job(slot, None)
