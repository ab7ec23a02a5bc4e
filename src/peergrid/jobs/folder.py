"""The folder of a run's results."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.io.checkpoints import checkpoint_files
from peergrid.models import BuiltModel, Outcome
from peergrid.simulate import Simulation

PARTIAL = re.compile(r"\.[^/]+\.\d+\.partial\.\w+")  # names that `files.draft` gives to incomplete files
PARTS = "snapshots-from-*.h5"


@dataclass(frozen=True)
class Folder:
    """A folder for results. Files get their names only when complete."""

    path: Path

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots.h5"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def traces(self) -> Path:
        return self.path / "traces"

    def prepare(self, option: str = "-o DIR") -> None:
        """Make the folder before anything is computed; option: that names it. Raises UsageError if it cannot be
        written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path).close()
            for name in ("results.h5", self.snapshots.name):
                if (self.path / name).is_dir():
                    raise IsADirectoryError(EISDIR, f"'{name}' there is a folder")
        except FileExistsError:
            raise UsageError(
                f"The results should go to '{self.path}', but that is a file: choose a folder with {option}."
            ) from None
        except OSError as error:
            raise UsageError(
                f"The results should go to '{self.path}', which cannot be written ({error.strerror or error}): "
                f"choose a folder you can write to with {option}."
            ) from None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Reserve the folder for this run, and remove incomplete files of an earlier one. Raises UsageError if another
        run writes to it.
        """
        self.prepare()
        opened = os.open(self.path, os.O_RDONLY)
        try:
            self._lock(opened)
            for folder in (self.path, self.checkpoints, self.traces):
                for file in folder.glob(".*.partial.*"):
                    if PARTIAL.fullmatch(file.name):
                        file.unlink(missing_ok=True)
            yield
        finally:
            os.close(opened)

    def _lock(self, opened: int) -> None:
        """Lock the folder until the process ends. Some network file systems have no locks."""
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"The results should go to '{self.path}', but another run writes there: wait for it, or choose another "
                "folder with -o DIR."
            ) from None
        except OSError:
            pass

    def clear_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is complete."""
        for file in (*checkpoint_files(self.checkpoints), *self.checkpoints.glob(PARTS)):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # it does not exist, or has other files
            self.checkpoints.rmdir()

    def finish(
        self, built: BuiltModel, simulation: Simulation, sha256: str, *, snapshots: bool, pictures: bool = True
    ) -> tuple[Path, ...]:
        """Write traces, final fields and, unless left out, pictures; returns every file of the run.

        snapshots: whether the run wrote its file of snapshots. Raises UsageError if a file cannot be written, or is
        written without the final fields.
        """
        os.environ["MPLBACKEND"] = "agg"  # pictures go to files, for any setting of the user
        film = self.snapshots if snapshots else None
        outcome = Outcome(
            traces=simulation.traces(),
            fields=((name, simulation.gather(name)) for name in simulation.problem.state),  # one at a time
            snapshots=film,
            reductions=simulation.reductions(),
            about={"devices": str(simulation.devices), "steps": simulation.step, "sha256": sha256},
            pictures=pictures,
        )
        try:
            written = built.write(self.path, outcome)
        except UsageError as error:
            outcome.faults.append(error)
        if outcome.faults:
            raise outcome.faults[0]
        return (written[0], film, *written[1:]) if film else written
