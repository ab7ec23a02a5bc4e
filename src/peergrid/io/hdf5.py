"""New HDF5 files on disks that may be full, and datasets of untrusted files.

The HDF5 library cannot close a file whose writes fail: it tries again and prints errors past every handler. So it
writes through an object that records the first fault, ignores later writes, and reports the fault on request. It can
also undo what was written since a moment at which the file was whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from peergrid.errors import UsageError
from peergrid.files import check_plain, no_room, replacing

LARGEST = 1 << 40  # bytes
UNREADABLE = (OSError, ValueError, TypeError, EOFError, SyntaxError, OverflowError, RuntimeError, MemoryError)
"""Errors of NumPy and HDF5 on damaged files."""


class Disk(RawIOBase):
    """A binary file whose writes never fail; `fault` is the error of the first one that did.

    kept: the words of the last `keep`, or "".
    """

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw
        self._size = 0  # of the file when it was last kept
        self._replaced: list[tuple[int, bytes]] = []  # since then: places and what they had, the oldest first
        self.fault: OSError | None = None
        self.kept = ""

    def keep(self, what: str) -> None:
        """Let `undo` return to this moment; what: words for what the file has."""
        self._size, self._replaced, self.kept = os.fstat(self._raw.fileno()).st_size, [], what

    def undo(self) -> None:
        """Return to the last `keep`, without a fault. Raises OSError if that fails."""
        for place, before in reversed(self._replaced):
            os.pwrite(self._raw.fileno(), before, place)
        self._raw.truncate(self._size)
        self._replaced, self.fault = [], None

    def _remember(self, place: int, size: int) -> None:
        """Keep for `undo` what these bytes have; those beyond the kept file are nothing to return to."""
        if place < self._size:
            self._replaced.append((place, os.pread(self._raw.fileno(), min(size, self._size - place), place)))

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            if self.fault is None:
                self._remember(self._raw.tell(), size)
            while rest and self.fault is None:
                rest = rest[self._raw.write(rest) :]
        except OSError as error:
            self.fault = error
        return size

    def truncate(self, size: int | None = None) -> int:
        size = self._raw.tell() if size is None else size
        try:
            if self.fault is None:
                self._remember(size, self._size)
                self._raw.truncate(size)
        except OSError as error:
            self.fault = error
        return size

    def readinto(self, buffer: Any) -> int:
        return self._raw.readinto(buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def flush(self) -> None:
        """Nothing to do: the file below has no buffer."""


@dataclass(frozen=True)
class NewFile:
    """An HDF5 file in the making."""

    hdf5: h5py.File
    disk: Disk

    def check(self, kept: str = "") -> None:
        """Flush to the disk. Raises OSError if a write failed.

        kept: words for what the file has now, which `growing` keeps if later writes fail.
        """
        self.hdf5.flush()
        if self.disk.fault is not None:
            raise self.disk.fault
        if kept:
            self.disk.keep(kept)


@contextmanager
def creating(path: Path, checked: bool = False) -> Iterator[NewFile]:
    """A new file that gets its name when the block ends without an error. Raises UsageError if it cannot be written.

    checked: what describes the arrays has checksums (a format of HDF5 1.10), so that a damaged file is refused at once;
    for files that only peergrid reads again.
    """
    version = ("v110", "v110") if checked else None
    with replacing(path) as partial, partial.open("x+b", buffering=0) as raw:
        disk = Disk(raw)
        with h5py.File(disk, "w", libver=version) as file:
            yield NewFile(file, disk)
        if disk.fault is not None:
            raise disk.fault


@contextmanager
def growing(path: Path, complete: Callable[[h5py.File], None]) -> Iterator[NewFile]:
    """As `creating`, but a file without room for more gets its name, too, with what it kept (`NewFile.check`); then
    raises UsageError that says what this is.

    complete: writes at the end what readers can do without; also of a file without room for more, if there is for that.
    """
    fault: OSError | None = None
    with replacing(path) as partial, partial.open("x+b", buffering=0) as raw:
        disk = Disk(raw)
        try:
            with h5py.File(disk, "w") as file:
                yield NewFile(file, disk)
                complete(file)
            if disk.fault is not None:
                raise disk.fault
        except OSError as error:
            if not disk.kept:
                raise
            fault = error
            _complete_kept(disk, complete)
    if fault is not None:
        raise UsageError(f"'{path}' has {disk.kept} alone: {no_room(path, fault)}")


def _complete_kept(disk: Disk, complete: Callable[[h5py.File], None]) -> None:
    """Return to what the file kept, and complete it if there is room."""
    disk.undo()
    with h5py.File(disk, "r+") as file:
        complete(file)
    if disk.fault is not None:
        disk.undo()


def text(words: str) -> Any:
    """Words as a value of fixed length. Others lie in a heap without checksums, which HDF5 may read for ever where it
    is damaged.
    """
    data = words.encode()
    return np.array(data, dtype=f"S{max(1, len(data))}")


def words(found: Any) -> str:
    """The words of an attribute of either length."""
    return found.decode() if isinstance(found, bytes) else str(found)


@contextmanager
def reading(path: Path) -> Iterator[h5py.File]:
    """An untrusted file. Raises OSError if it is no plain file, ValueError if a part of it lies in another one, which
    may be a pipe that never ends; nothing there is opened.
    """
    check_plain(path, LARGEST)
    with h5py.File(path, "r") as file:
        if file.visititems_links(_leads_elsewhere) or file.visititems(_lies_elsewhere):
            raise ValueError("its values lie in another file")
        yield file


def _leads_elsewhere(_: str, link: object) -> bool | None:
    return isinstance(link, h5py.ExternalLink) or None  # None: look further


def _lies_elsewhere(_: str, found: object) -> bool | None:
    return (isinstance(found, h5py.Dataset) and bool(found.external or found.is_virtual)) or None


def own_dataset(opened: h5py.File, name: str) -> Any:
    """A dataset of a file that `reading` opened. Raises KeyError if there is none, ValueError if it is empty."""
    found = opened[name]
    if not isinstance(found, h5py.Dataset):
        raise KeyError(name)
    if found.shape is None:
        raise ValueError("it holds no values")
    return found
