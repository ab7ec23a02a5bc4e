"""The traces of a survey on disk, one file each, complete and with a checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import h5py
import numpy as np

from peergrid.errors import UsageError
from peergrid.io.hdf5 import creating, text, words
from peergrid.models.survey import Trace, Vector

FILES = "trace-*.h5"
DAMAGED = (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError)
"""Errors of HDF5 on damaged files."""


@dataclass(frozen=True)
class TraceFiles(Sequence[Trace]):
    """The traces of one survey in a folder, read from the disk on access.

    survey: the digest of the survey, to detect files of another one; total: the number of traces.
    """

    folder: Path
    survey: str
    total: int

    def path(self, number: int) -> Path:
        return self.folder / f"trace-{number:06d}.h5"

    def write(self, number: int, trace: Trace) -> None:
        """Write a trace. Raises UsageError if the file cannot be written."""
        with creating(self.path(number), checked=True) as new:
            file = new.hdf5
            file.attrs["survey"], file.attrs["sha256"] = text(self.survey), text(digest_of(trace))
            file["values"], file["sources"], file["receivers"] = trace.values, trace.sources, trace.receivers
            for name, values in trace.findings.items():
                file[f"findings/{name}"] = values

    def done(self) -> tuple[int, ...]:
        """The numbers of the complete traces. Raises UsageError for traces of another survey."""
        found = [number for number in range(self.total) if self.path(number).exists()]
        return tuple(number for number in found if self._whole(number))

    def __len__(self) -> int:
        return self.total

    @overload
    def __getitem__(self, number: int) -> Trace: ...

    @overload
    def __getitem__(self, number: slice) -> list[Trace]: ...

    def __getitem__(self, number: int | slice) -> Trace | list[Trace]:
        if isinstance(number, slice):
            return [self[one] for one in range(self.total)[number]]
        with h5py.File(self.path(range(self.total)[number]), "r") as file:
            return _read(file)

    def clear(self) -> None:
        """Remove all files, and the folder if it is empty then."""
        for file in self.folder.glob(FILES):
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _whole(self, number: int) -> bool:
        try:
            with h5py.File(self.path(number), "r") as file:
                survey, given, trace = words(file.attrs["survey"]), words(file.attrs["sha256"]), _read(file)
        except DAMAGED:
            return False
        if survey != self.survey:
            raise UsageError(
                f"'{self.folder}' is expected to hold traces of this survey, and holds those of another; go on with "
                "the model as it was, remove them, or choose another folder with -o DIR."
            )
        return digest_of(trace) == given


def digest_of(trace: Trace) -> str:
    """SHA-256 of a trace's values, positions and findings."""
    digest = hashlib.sha256(repr((trace.sources, trace.receivers, trace.values.dtype.str, trace.values.shape)).encode())
    digest.update(np.ascontiguousarray(trace.values).data)
    for name, values in sorted(trace.findings.items()):
        digest.update(repr((name, values.dtype.str, values.shape)).encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _read(file: h5py.File) -> Trace:
    found = file.get("findings", {})
    findings = {name: values[...] for name, values in found.items()}
    return Trace(_places(file["sources"]), _places(file["receivers"]), file["values"][...], findings)


def _places(found: h5py.Dataset) -> tuple[Vector, ...]:
    return tuple(tuple(map(float, one)) for one in found[...])
