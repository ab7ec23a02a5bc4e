"""Snapshots streamed to HDF5 by a background thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.errors import PeergridError, UsageError
from peergrid.grid import Array
from peergrid.io.dimensions import AXES, add_axes, add_image, attach, make_scale
from peergrid.io.hdf5 import creating, growing

WAITING = 4  # snapshots kept in memory before the run waits for the disk

Snapshot = tuple[int, Mapping[str, Array]]


@dataclass(frozen=True)
class Scale:
    """Scales and units of the numbers in snapshots.

    dt: seconds of a step; spacing: metres from node to node along each axis; units: the SI value of one unit of each
    field; stride: of the nodes that are kept, along each axis; unit_names: of the fields, if known; axes: the names of
    the grid's axes, by default the first of x, y and z; origin: metres of the first node, by default 0.
    """

    title: str
    dt: float
    spacing: tuple[float, ...]
    units: Mapping[str, float]
    stride: int = 1
    unit_names: Mapping[str, str] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    origin: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.axes or tuple(AXES[: len(self.spacing)]))
        object.__setattr__(self, "origin", self.origin or (0.0,) * len(self.spacing))

    @property
    def steps(self) -> tuple[float, ...]:
        """Metres from one kept node to the next."""
        return tuple(length * self.stride for length in self.spacing)


class SnapshotWriter:
    """Writes the snapshots of a run in the background; use as a context manager.

    File: `step` (n), `time` (n, seconds) and one dataset per field (n, nodes along each axis) in SI units, every
    `stride`-th node, with dimension scales and units, and as an image over time (see `dimensions`). It gets its name
    when the block is left, also by an error or an interrupt, or because the disk is full; it then has the snapshots so
    far.
    """

    def __init__(self, path: Path, scale: Scale) -> None:
        self._path = path
        self._scale = scale
        self._queue: Queue[Snapshot | None] = Queue(maxsize=WAITING)
        self._fault: Exception | None = None
        self._ended = False
        self._failed = False
        self._thread = Thread(target=self._work, name="snapshots", daemon=True)

    def put(self, step: int, fields: Mapping[str, Array]) -> None:
        """Add the fields after `step` steps; the arrays must not change afterwards.

        Raises UsageError if an earlier snapshot could not be written.
        """
        self._raise()
        stride = self._scale.stride
        thinned = {name: values[(slice(None, None, stride),) * values.ndim] for name, values in fields.items()}
        self._queue.put((step, thinned))

    def close(self) -> None:
        """Write what is left and give the file its name. Raises UsageError if that fails."""
        self._queue.put(None)
        self._thread.join()
        self._raise()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:  # report the first error
            self._failed = True
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        try:
            with growing(self._path, lambda file: _complete(file, self._scale)) as new:
                _describe(new.hdf5, self._scale)
                for step, fields in self._taken():
                    _append(new.hdf5, self._scale, step, _scaled(fields, self._scale))
                    new.check(kept=f"the snapshots up to step {step:,}")
                if self._failed and "step" not in new.hdf5:
                    raise UsageError("The run failed before its first snapshot; the file of an earlier run stays.")
        except Exception as error:
            self._fault = error
            for _ in self._taken():  # the run must not wait for a dead writer
                pass

    def _taken(self) -> Iterator[Snapshot]:
        """Yield the snapshots until the writer is closed."""
        while not self._ended:
            item = self._queue.get()
            if item is None:
                self._ended = True
            else:
                yield item

    def _raise(self) -> None:
        if isinstance(self._fault, PeergridError):
            raise self._fault
        if self._fault is not None:
            raise RuntimeError("The thread that writes snapshots failed.") from self._fault


class SnapshotParts:
    """Writes snapshots as `SnapshotWriter` does, into files that begin and end at steps at which a run may resume.

    path: the file with all of them, when the block is left; folder: of the parts; start: the step from which the run
    continues; parts of an earlier run beyond it are removed; every: steps between two snapshots.
    Entering it raises UsageError if a snapshot before `start` is missing.
    """

    def __init__(self, path: Path, scale: Scale, folder: Path, start: int, every: int) -> None:
        self._path, self._scale, self._folder, self._start, self._every = path, scale, folder, start, every
        self._writer: SnapshotWriter | None = None

    def put(self, step: int, fields: Mapping[str, Array]) -> None:
        """As in `SnapshotWriter`."""
        if self._writer is None:
            self._writer = SnapshotWriter(self._part(self._start), self._scale).__enter__()
        self._writer.put(step, fields)

    def cut(self, step: int) -> None:
        """Write all snapshots so far to the disk; later ones go to a new part, from `step` on."""
        writer, self._writer, self._start = self._writer, None, step
        if writer is not None:
            writer.close()

    def __enter__(self) -> Self:
        for part in self._parts():
            if part >= self._part(self._start):
                part.unlink()
        self._require_earlier()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        writer, self._writer = self._writer, None
        first = error
        try:
            if writer is not None:
                writer.__exit__(kind, error, where)
        except UsageError as fault:
            first = fault
            raise
        finally:
            if first is None or self._parts():
                with suppress(UsageError) if first is not None else nullcontext():  # report the first error
                    _merge(self._parts(), self._path, self._scale)

    def _require_earlier(self) -> None:
        """Raise UsageError if a snapshot up to the first step is missing."""
        there = {step for part in self._parts() for step in _steps(part)}
        for step in range(self._every, self._start + 1, self._every):
            if step not in there:
                raise UsageError(
                    f"'{self._folder}' is expected to hold the snapshots up to step {self._start:,}, but lacks that of "
                    f"step {step:,}; bring its files back, or start anew."
                )

    def _part(self, start: int) -> Path:
        return self._folder / f"snapshots-from-{start:012d}.h5"

    def _parts(self) -> list[Path]:
        return sorted(self._folder.glob("snapshots-from-*.h5"))


def _merge(parts: list[Path], path: Path, scale: Scale) -> None:
    """Merge all snapshots into one file. Raises UsageError if it cannot be written, or a part cannot be read."""
    with creating(path) as new:
        _describe(new.hdf5, scale)
        for part in parts:
            for step, fields in _frames(part):
                _append(new.hdf5, scale, step, fields)
            new.check()
        _complete(new.hdf5, scale)


def _frames(part: Path) -> Iterator[tuple[int, dict[str, Array]]]:
    """The steps and fields of a part."""
    with _reading(part) as reader:
        for number, step in enumerate(reader.steps):
            yield step, {name: reader.frame(name, number) for name in reader.fields}


def _steps(part: Path) -> tuple[int, ...]:
    """The steps of a part."""
    with _reading(part) as reader:
        return reader.steps


@contextmanager
def _reading(part: Path) -> Iterator[SnapshotReader]:
    """The reader of a part. Raises UsageError if it cannot be read."""
    try:
        with read_snapshots(part) as reader:
            yield reader
    except (OSError, RuntimeError):
        raise UsageError(f"'{part}' is expected to hold snapshots, and cannot be read; start anew.") from None


class SnapshotReader:
    """The snapshots of a finished file."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self.steps: tuple[int, ...] = tuple(int(s) for s in file["step"]) if "step" in file else ()
        self.fields: tuple[str, ...] = tuple(_fields(file))
        self.times: tuple[float, ...] = tuple(float(t) for t in file["time"]) if "time" in file else ()

    def frame(self, field: str, number: int, where: tuple[slice | int, ...] = ()) -> Array:
        """The snapshot `number` of a field, shape (nodes along x, nodes along y, ...), or the part of it at `where`."""
        values: Array = self._file[field][(number, *where)]
        return values


@contextmanager
def read_snapshots(path: Path) -> Iterator[SnapshotReader]:
    """Open a file of snapshots."""
    with h5py.File(path, "r") as file:
        yield SnapshotReader(file)


def _describe(file: h5py.File, scale: Scale) -> None:
    file.attrs["Title"] = scale.title
    file.attrs["dt"] = scale.dt
    steps = scale.steps
    file.attrs["dx_dy_dz"] = (*steps, *(scale.spacing[:1] * (3 - len(steps))))


def _fields(file: h5py.File) -> list[str]:
    """The names of the fields in a file: of all arrays but coordinates."""
    return [name for name, one in file.items() if isinstance(one, h5py.Dataset) and one.ndim > 1]


def _scaled(fields: Mapping[str, Array], scale: Scale) -> dict[str, Array]:
    return {name: np.asarray(values) * values.dtype.type(scale.units[name]) for name, values in fields.items()}


def _append(file: h5py.File, scale: Scale, step: int, fields: Mapping[str, Array]) -> None:
    """Add a snapshot, in SI units; the first one makes the arrays and their coordinates."""
    first = "step" not in file
    _extend(file, "step", np.asarray(step, dtype=np.int64))
    _extend(file, "time", np.asarray(step * scale.dt, dtype=np.float64))
    named = not {"time", "step", *AXES} & fields.keys()  # a field of this name would be taken for coordinates
    if first and fields and named:
        make_scale(file["time"], "s")
        attach(file["step"], ["time"])
        add_axes(file, scale.axes, scale.steps, next(iter(fields.values())).shape, scale.origin)
    for name, values in fields.items():
        _extend(file, name, values)
        if first and named:
            attach(file[name], ["time", *scale.axes], scale.unit_names.get(name))


def _complete(file: h5py.File, scale: Scale) -> None:
    """Add the metadata for other programs that need all snapshots."""
    add_image(file, _fields(file), scale.axes, scale.steps, scale.origin)


def _extend(file: h5py.File, name: str, values: NDArray[Any]) -> None:
    """Add one entry along the first axis of a dataset; the first one makes it."""
    if name not in file:
        chunk = (1, *values.shape) if values.ndim else (256,)
        file.create_dataset(name, (0, *values.shape), values.dtype, maxshape=(None, *values.shape), chunks=chunk)
    dataset = file[name]
    dataset.resize(dataset.shape[0] + 1, axis=0)
    dataset[-1] = values
