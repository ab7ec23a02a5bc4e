"""Snapshots and checkpoints that a run writes while it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from peergrid.cli.notes import warn
from peergrid.cli.outputs import Folder
from peergrid.io.checkpoints import Checkpoints, Period
from peergrid.io.snapshots import SnapshotParts, SnapshotWriter
from peergrid.models.fdtd import Built
from peergrid.simulate import Simulation

ABOUT = "snapshots"  # the name under which a checkpoint has how these are taken


@dataclass(frozen=True)
class Recording:
    """The writers of a run and their steps; snapshots: None where none are taken."""

    built: Built
    simulation: Simulation
    snapshots: SnapshotWriter | SnapshotParts | None = None
    checkpoints: Checkpoints | None = None

    @property
    def every(self) -> tuple[int, ...]:
        """The periods, in steps, at whose multiples the run has to pause."""
        taken = 0 if self.snapshots is None else self.built.model.output.snapshots
        kept = 0 if self.checkpoints is None else self.checkpoints.every
        return self.built.model.run.check_every, taken, kept

    def look(self, step: int) -> None:
        """Write what is due after a step. Raises Unstable where a field is not finite."""
        if step % self.built.model.run.check_every == 0:
            self.simulation.check()
        output = self.built.model.output
        if self.snapshots is not None and step % output.snapshots == 0:
            self.snapshots.put(step, {name: self.simulation.gather(name) for name in output.fields})
        if self.checkpoints is not None and self.checkpoints.due(step):
            self.keep()

    def keep(self) -> None:
        """Make a checkpoint now, of a run that makes any, with the snapshots up to here on the disk before it."""
        if self.checkpoints is not None:
            self.simulation.check()
            if isinstance(self.snapshots, SnapshotParts):
                self.snapshots.cut(self.simulation.step)
            state = self.simulation.state()
            self.checkpoints.keep(replace(state, about={ABOUT: snapshots_in_words(self.built)}))


@contextmanager
def recording(
    folder: Folder | None, built: Built, simulation: Simulation, period: Period | None
) -> Iterator[Recording]:
    """The writers of a run; snapshots get their file's name when it is left, however it is left."""
    if folder is None:
        yield Recording(built, simulation)
        return
    with ExitStack() as stack:
        checkpoints = None if period is None else stack.enter_context(Checkpoints(folder.checkpoints, period, warn))
        snapshots: SnapshotWriter | SnapshotParts | None = None
        if built.model.output.snapshots and (period is not None or simulation.step):
            parts = SnapshotParts(folder.snapshots, built, folder.checkpoints, simulation.step)
            snapshots = stack.enter_context(parts)
        elif built.model.output.snapshots:
            snapshots = stack.enter_context(SnapshotWriter(folder.snapshots, built))
        yield Recording(built, simulation, snapshots, checkpoints)


def snapshots_in_words(built: Built) -> str:
    """The options of a model's snapshots in words, to compare; empty where there are none."""
    output = built.model.output
    return (
        f"{', '.join(output.fields)} every {output.snapshots} steps, stride {output.stride}" if output.snapshots else ""
    )
