"""Snapshots and checkpoints that are written during a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from peergrid.errors import UsageError
from peergrid.files import reserved
from peergrid.io.behind import Behind, behind
from peergrid.io.checkpoints import Checkpoints, Period
from peergrid.io.snapshots import Scale, SnapshotParts, SnapshotWriter
from peergrid.jobs.folder import Folder
from peergrid.models import AxesNamed, BuiltModel, MomentsBuilt, UnitsNamed
from peergrid.simulate import Simulation

ABOUT = "snapshots"  # the name of the snapshot options in a checkpoint
BESIDE, OF_TRACE = 1 << 16, 1 << 13  # bytes of results beside traces, and beside the values of a trace
STEPS = "steps"  # the name of the number of steps of the run in a checkpoint


@dataclass
class Recording:
    """The writers of a run and their steps; snapshots: None if none are taken, or no more can be written.

    folder, files: of data written after single steps, None if there are none; say: called with a sentence about the
    first snapshot that cannot be written, without which the run continues; fault: that of this snapshot, or "".
    """

    built: BuiltModel
    simulation: Simulation
    snapshots: SnapshotWriter | SnapshotParts | None = None
    checkpoints: Checkpoints | None = None
    folder: Folder | None = None
    files: Behind | None = None
    say: Callable[[str], None] = print
    fault: str = ""

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
            for work in self.built.moment(self.folder.path, step, self.simulation.gather):
                self.files.put(work)

    def look(self, step: int) -> None:
        """Write all data due after a step. Raises Unstable if a field is not finite."""
        if step % self.built.model.run.check_every == 0:
            self.simulation.check()
        taken = self.built.model.snapshots
        if self.snapshots is not None and step % taken.every == 0:
            found = {name: self.simulation.gather(name) for name in taken.fields}
            with self.noting():
                self.snapshots.put(step, found)
        self.take(step)
        if self.checkpoints is not None and self.checkpoints.due(step):
            self.keep()

    def keep(self) -> None:
        """Write a checkpoint now, if the run has checkpoints, after all snapshots so far; none beyond a snapshot that
        could not be written, which a run that resumes has to take again.
        """
        if self.checkpoints is None or self.fault:
            return
        self.simulation.check()
        if self.files is not None:
            self.files.wait()
        if isinstance(self.snapshots, SnapshotParts):
            with self.noting():
                self.snapshots.cut(self.simulation.step)
        if not self.fault:
            state = self.simulation.state()
            self.checkpoints.keep(
                replace(state, about={ABOUT: snapshots_in_words(self.built), STEPS: str(self.built.steps)})
            )

    def note(self, fault: UsageError) -> None:
        """Continue without a snapshot that cannot be written."""
        if not self.fault:
            self.fault = str(fault)  # the error would keep the fields of the snapshot
            self.say(f"A snapshot could not be written, and the run continues without it: {fault}")

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Continue without snapshots if the block cannot write them."""
        try:
            yield
        except UsageError as fault:
            self.snapshots = None
            self.note(fault)

    def check(self) -> None:
        """Raise UsageError if a snapshot could not be written."""
        if self.fault:
            raise UsageError(self.fault)


@contextmanager
def recording(
    folder: Folder | None,
    built: BuiltModel,
    simulation: Simulation,
    period: Period | None,
    say: Callable[[str], None],
) -> Iterator[Recording]:
    """The writers of a run; the file of snapshots gets its name when the block is left, also by an error.

    say: called with a sentence about each checkpoint, and the first snapshot, that cannot be written.
    """
    if folder is None:
        yield Recording(built, simulation)
        return
    recorded = Recording(built, simulation, folder=folder, say=say)
    with ExitStack() as stack:
        stack.enter_context(reserved(folder.path, _results_size(built)))  # snapshots and checkpoints leave it
        if period is not None:
            recorded.checkpoints = stack.enter_context(Checkpoints(folder.checkpoints, period, say))
        if built.model.snapshots.every:
            stack.enter_context(_snapshots(recorded, folder))
        if isinstance(built, MomentsBuilt) and built.moments:
            recorded.files = stack.enter_context(behind(recorded.note))
        if simulation.step == 0:
            recorded.take(0)
        yield recorded


@contextmanager
def _snapshots(recorded: Recording, folder: Folder) -> Iterator[None]:
    """Write the file of snapshots while the block runs: in parts if there are checkpoints, or if the run resumes."""
    scale, start = scale_of(recorded.built), recorded.simulation.step
    writer: SnapshotWriter | SnapshotParts = SnapshotWriter(folder.snapshots, scale)
    if recorded.checkpoints is not None or start:
        every = recorded.built.model.snapshots.every
        writer = SnapshotParts(folder.snapshots, scale, folder.checkpoints, start, every)
    with ExitStack() as stack:
        stack.enter_context(writer)
        recorded.snapshots = writer
        yield
        with recorded.noting():
            stack.close()


def _results_size(built: BuiltModel) -> int:
    """Bytes of a run's results without final fields, about: of each receiver its trace, in any precision."""
    return BESIDE + (len(built.problem.receivers) + 1) * (8 * built.steps + OF_TRACE)


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
