"""One job as a process: `sh` runs the command in a session of its own and records its exit code."""

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
    """A running job; process: None for one that an earlier farm started."""

    job: int
    started: float
    process: subprocess.Popen[bytes] | None = None
    watched: int | None = None

    def ended(self, folder: FarmFolder) -> bool:
        """True once its `sh` has ended, or has written the exit code."""
        if self.process is not None:
            return self.process.poll() is not None
        return folder.exit_code(self.job) is not None or not folder.runs(self.job)

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the job's session; not to jobs of earlier farms."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Release the file descriptor that watches the process."""
        if self.watched is not None:
            os.close(self.watched)


def start(job: Job, slot: JobSlot, folder: FarmFolder) -> Running:
    """Start a job on a slot. Its log stays locked while it runs, as its processes inherit the open file."""
    folder.exit_file(job.number).unlink(missing_ok=True)
    with folder.log(job.number).open("ab") as log, _bound_to(slot.cpus):
        with suppress(OSError):  # on a file system without locks
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
    """End jobs: SIGTERM, and after `grace` seconds SIGKILL; returns when each `sh` has ended."""
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
def _bound_to(cpus: tuple[int, ...]) -> Iterator[None]:
    """Bind this thread to some processors, for child processes to inherit."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
