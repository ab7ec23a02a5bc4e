"""The folder of a farm: its command and inputs, each job's log and exit code, and a journal of starts and ends.

A job's exit code is written by the `sh` that runs it, so it exists even if the farm was killed; the log stays locked
while a process of the job has it open, so that a later farm knows that the job still runs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from peergrid.errors import UsageError
from peergrid.farm.jobs import Job
from peergrid.files import replacing


@dataclass(frozen=True)
class Done:
    """The jobs of an earlier farm in this folder: those that succeeded, and job → slot of those that still run."""

    done: frozenset[int]
    running: dict[int, str]


@dataclass(frozen=True)
class FarmFolder:
    """Files of a farm, by job number."""

    path: Path

    def log(self, job: int) -> Path:
        """Standard output and standard error of a job, all attempts one after the other."""
        return self.path / f"{job}.log"

    def exit_file(self, job: int) -> Path:
        """The exit code of a job's last attempt, once it has ended."""
        return self.path / f"{job}.exit"

    def exit_code(self, job: int) -> int | None:
        """The exit code of the last attempt; None if it has not ended by itself."""
        try:
            return int(self.exit_file(job).read_text())
        except (OSError, ValueError):
            return None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Reserve the folder for this farm, and make it if needed.

        Raises UsageError if it cannot be written, then or later, or another farm uses it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            opened = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise UsageError(
                f"The logs should go to '{self.path}', which cannot be written ({error.strerror or error}): choose a "
                "folder with --log DIR."
            ) from None
        try:
            if is_locked(opened):
                raise UsageError(
                    f"The logs should go to '{self.path}', but another farm works there: wait for it, or choose "
                    "another folder with --log DIR."
                )
            yield
        except OSError as error:
            raise UsageError(
                f"The farm in '{self.path}' could not go on: {error.strerror or error}. Jobs that run may end; go on "
                "with '--resume'."
            ) from None
        finally:
            os.close(opened)

    def begin(self, command: Sequence[str], jobs: Sequence[Job], resume: bool) -> Done:
        """Record the command and the inputs. Raises UsageError if the folder has another farm, or one that is not
        resumed.
        """
        inputs, earlier = [job.input for job in jobs], self.earlier()
        if earlier is not None and not resume:
            raise UsageError(
                f"'{self.path}' is expected to hold no farm, and holds that of {len(earlier['inputs'])} jobs: go on "
                "with '--resume', remove it, or choose another folder with --log DIR."
            )
        if earlier is not None and (earlier["command"], earlier["inputs"]) != (
            list(command),
            inputs[: len(earlier["inputs"])],
        ):
            raise UsageError(
                f"'--resume' continues with the command and the inputs of the farm in '{self.path}', to which inputs "
                "may be added at the end, but others came: leave them out, or choose another folder with --log DIR."
            )
        with replacing(self.path / "farm.json") as partial:
            partial.write_text(json.dumps({"command": list(command), "inputs": inputs}, indent=1) + "\n")
        return self.left(jobs) if earlier is not None else Done(frozenset(), {})

    def earlier(self) -> dict[str, list[str]] | None:
        """The command and the inputs of the farm in this folder; None if there is none."""
        file = self.path / "farm.json"
        try:
            found: dict[str, Any] = json.loads(file.read_text())
            return {name: [word + "" for word in found[name]] for name in ("command", "inputs")}  # texts alone
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"'{file}' should describe a farm and cannot be read as one; remove the folder.") from None

    @contextmanager
    def journal(self) -> Iterator[TextIO]:
        """The journal, open to append lines of JSON."""
        with (self.path / "journal.jsonl").open("a", buffering=1) as file:
            yield file

    def left(self, jobs: Sequence[Job]) -> Done:
        """The jobs of an earlier farm that are done or still run."""
        codes = {job.number: self.exit_code(job.number) for job in jobs}
        slots = self._last_slots()
        running = {
            number: slots.get(number, "") for number, code in codes.items() if code is None and self.runs(number)
        }
        return Done(frozenset(number for number, code in codes.items() if code == 0), running)

    def runs(self, job: int) -> bool:
        """True while a process of the job has its log open."""
        try:
            opened = os.open(self.log(job), os.O_RDONLY)
        except OSError:
            return False
        try:
            return is_locked(opened)
        finally:
            os.close(opened)

    def _last_slots(self) -> dict[int, str]:
        """The slot on which each job was last started, from the complete lines of the journal."""
        found: dict[int, str] = {}
        file = self.path / "journal.jsonl"
        for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
            try:
                entry = json.loads(line)
                if entry["event"] == "start":
                    found[int(entry["job"])] = str(entry["slot"])
            except (ValueError, KeyError, TypeError, RecursionError):  # cut off by a kill
                continue
        return found


def is_locked(opened: int) -> bool:
    """True if another process holds the lock of this file; else this process holds it now. False on file systems
    without locks.
    """
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
