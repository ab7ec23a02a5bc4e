"""The folder of a run's results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.io.results import write_results
from peergrid.io.snapshots import SnapshotWriter
from peergrid.models.fdtd import Built
from peergrid.simulate import Simulation

RESULTS, SNAPSHOTS = "results.h5", "snapshots.h5"


@dataclass(frozen=True)
class Folder:
    """Where results go. Files appear in it only when complete."""

    path: Path

    def prepare(self) -> None:
        """Make the folder, before anything is computed. Raises UsageError where it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".peergrid"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(
                f"The results should go to '{self.path}', but {error.strerror or error}: "
                "choose a folder you can write to with -o DIR."
            ) from None

    def snapshot_writer(self, built: Built) -> SnapshotWriter:
        return SnapshotWriter(self.path / SNAPSHOTS, built)

    def finish(self, built: Built, simulation: Simulation, sha256: str) -> tuple[Path, ...]:
        """Write traces, final fields and pictures; return every file of the run."""
        from peergrid.io.gallery import draw_all  # takes matplotlib along, which is slow to come

        traces = simulation.traces()
        fields = {name: simulation.gather(name) for name in simulation.problem.state}
        about: dict[str, str | int | float] = {
            "devices": str(simulation.devices),
            "steps": simulation.step,
            "sha256": sha256,
        }
        write_results(self.path / RESULTS, built, traces, fields, about)
        snapshots = self.path / SNAPSHOTS if built.model.output.snapshots else None
        written = [self.path / RESULTS, *([snapshots] if snapshots else [])]
        written.extend(draw_all(self.path, built, traces, snapshots))
        return tuple(written)
