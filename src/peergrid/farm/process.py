"""One job as a process: `sh` runs the command and writes down its exit code, in a session of its own."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from peergrid.farm.folder import FarmFolder
from peergrid.farm.jobs import Job
from peergrid.farm.slots import JobSlot

RECORDING_SH = ("/bin/sh", "-c", '"$@"; echo $? >"$0"')


@dataclass(frozen=True)
class Running:
    """A job that runs; process: None for one that an earlier farm started."""

    job: int
    started: float
    process: subprocess.Popen[bytes] | None = None
    watched: int | None = None

    def ended(self, folder: FarmFolder) -> bool:
        """True once its `sh` is gone, or has written the exit code."""
        if self.process is not None:
            return self.process.poll() is not None
        return folder.exit_code(self.job) is not None or not folder.runs(self.job)

    def signal(self, number: int) -> None:
        """A signal to all processes of the job's session; jobs of earlier farms are let alone."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Release what watched the process."""
        if self.watched is not None:
            os.close(self.watched)


def start(job: Job, slot: JobSlot, folder: FarmFolder) -> Running:
    """Start a job on a slot. Its log is locked as long as it runs, for its processes inherit the open file."""
    folder.exit_file(job.number).unlink(missing_ok=True)
    with folder.log(job.number).open("ab") as log, _on(slot.cpus):
        with suppress(OSError):  # a file system without locks
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process = subprocess.Popen(
            [*RECORDING_SH, str(folder.exit_file(job.number).resolve()), *job.words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=slot.environment(os.environ),
            start_new_session=True,
        )
    return Running(job.number, time.time(), process, os.pidfd_open(process.pid))


def stop_all(running: list[Running], grace: float) -> None:
    """End jobs: SIGTERM, and after so many seconds SIGKILL; returns when each `sh` is gone."""
    for one in running:
        one.signal(signal.SIGTERM)
    until = time.monotonic() + grace
    for one in running:
        if one.process is not None:
            with suppress(subprocess.TimeoutExpired):
                one.process.wait(max(0.0, until - time.monotonic()))
            one.signal(signal.SIGKILL)
            one.process.wait()


@contextmanager
def _on(cpus: tuple[int, ...]) -> Iterator[None]:
    """This thread on these processors, for children to inherit."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
