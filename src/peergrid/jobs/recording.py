"""Snapshots and checkpoints that are written during a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from peergrid.io.behind import Behind, behind
from peergrid.io.checkpoints import Checkpoints, Period
from peergrid.io.snapshots import Scale, SnapshotParts, SnapshotWriter
from peergrid.jobs.folder import Folder
from peergrid.models import AxesNamed, BuiltModel, MomentsBuilt, UnitsNamed
from peergrid.simulate import Simulation

ABOUT = "snapshots"  # the name of the snapshot options in a checkpoint
STEPS = "steps"  # the name of the number of steps of the run in a checkpoint


@dataclass(frozen=True)
class Recording:
    """The writers of a run and their steps; snapshots: None if none are taken.

    folder, files: of data written after single steps, None if there are none.
    """

    built: BuiltModel
    simulation: Simulation
    snapshots: SnapshotWriter | SnapshotParts | None = None
    checkpoints: Checkpoints | None = None
    folder: Folder | None = None
    files: Behind | None = None

    @property
    def every(self) -> tuple[int, ...]:
        """The periods, in steps, at whose multiples the run has to pause."""
        taken = 0 if self.snapshots is None else self.built.model.snapshots.every
        kept = 0 if self.checkpoints is None else self.checkpoints.every
        return self.built.model.run.check_every, taken, kept

    @property
    def at(self) -> tuple[int, ...]:
        """Single steps at which the run has to pause."""
        return self.built.moments if self.files is not None and isinstance(self.built, MomentsBuilt) else ()

    def take(self, step: int) -> None:
        """Write the files of a single step, if it has any."""
        if step in self.at and self.files is not None and self.folder is not None:
            assert isinstance(self.built, MomentsBuilt)
            self.files.put(self.built.moment(self.folder.path, step, self.simulation.gather))

    def look(self, step: int) -> None:
        """Write all data due after a step. Raises Unstable if a field is not finite."""
        if step % self.built.model.run.check_every == 0:
            self.simulation.check()
        taken = self.built.model.snapshots
        if self.snapshots is not None and step % taken.every == 0:
            self.snapshots.put(step, {name: self.simulation.gather(name) for name in taken.fields})
        self.take(step)
        if self.checkpoints is not None and self.checkpoints.due(step):
            self.keep()

    def keep(self) -> None:
        """Write a checkpoint now, if the run has checkpoints, after all snapshots so far."""
        if self.checkpoints is not None:
            self.simulation.check()
            if self.files is not None:
                self.files.wait()
            if isinstance(self.snapshots, SnapshotParts):
                self.snapshots.cut(self.simulation.step)
            state = self.simulation.state()
            self.checkpoints.keep(
                replace(state, about={ABOUT: snapshots_in_words(self.built), STEPS: str(self.built.steps)})
            )


@contextmanager
def recording(
    folder: Folder | None,
    built: BuiltModel,
    simulation: Simulation,
    period: Period | None,
    say: Callable[[str], None],
) -> Iterator[Recording]:
    """The writers of a run; the file of snapshots gets its name when the block is left, also by an error.

    say: called with a sentence about each checkpoint that cannot be written.
    """
    if folder is None:
        yield Recording(built, simulation)
        return
    with ExitStack() as stack:
        checkpoints = None if period is None else stack.enter_context(Checkpoints(folder.checkpoints, period, say))
        snapshots: SnapshotWriter | SnapshotParts | None = None
        taken = built.model.snapshots
        scale = scale_of(built)
        if taken.every and (period is not None or simulation.step):
            parts = SnapshotParts(folder.snapshots, scale, folder.checkpoints, simulation.step, taken.every)
            snapshots = stack.enter_context(parts)
        elif taken.every:
            snapshots = stack.enter_context(SnapshotWriter(folder.snapshots, scale))
        files = stack.enter_context(behind()) if isinstance(built, MomentsBuilt) and built.moments else None
        recorded = Recording(built, simulation, snapshots, checkpoints, folder, files)
        if simulation.step == 0:
            recorded.take(0)
        yield recorded


def scale_of(built: BuiltModel) -> Scale:
    """Scales and units of a model's snapshots."""
    names = built.unit_names if isinstance(built, UnitsNamed) else {}
    axes, origin = (built.axes, built.origin) if isinstance(built, AxesNamed) else ((), ())
    stride = built.model.snapshots.stride
    return Scale(built.model.title, built.dt, built.spacing, built.units, stride, names, axes, origin)


def snapshots_in_words(built: BuiltModel) -> str:
    """The options of a model's snapshots in words, for comparison; '' if it has none."""
    taken = built.model.snapshots
    return f"{', '.join(taken.fields)} every {taken.every} steps, stride {taken.stride}" if taken.every else ""
