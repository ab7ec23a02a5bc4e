"""The folder of compiled code: its contents, and the bound on its size."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 1 << 30  # for processors, and as much for GPUs
LEFT = 3 / 4  # share of the bound to which the cache is reduced
GPU_CODE = "cubin"  # the folder of it


def default_cache() -> Path:
    """The user's folder for compiled code, after the XDG base directory specification: a relative path is ignored.

    Without a home folder it is a folder that cannot be written.
    """
    try:
        given = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (given if given.is_absolute() else Path.home() / ".cache") / "peergrid"
    except RuntimeError:
        return Path(os.devnull) / "peergrid"


@dataclass(frozen=True)
class Entry:
    """A file of compiled code, its bytes, and when it was last used, in seconds since 1970."""

    file: Path
    size: int
    used: float


@dataclass(frozen=True)
class Usage:
    """The size and the number of files in a folder of compiled code."""

    folder: Path
    processor_modules: int
    processor_bytes: int
    gpu_files: int
    gpu_bytes: int


def usage(folder: Path) -> Usage:
    """The usage of a folder, which need not exist."""
    modules = entries(folder)
    gpu = [_entry(file).size for file in (folder / GPU_CODE).rglob("*") if file.is_file()]
    return Usage(folder, len(modules), sum(one.size for one in modules), sum(size > 0 for size in gpu), sum(gpu))


def entries(folder: Path) -> list[Entry]:
    """The modules for processors, the least recently used first."""
    return sorted(map(_entry, _module_files(folder)), key=lambda one: one.used)


def keep_within(folder: Path, most: int = MOST_BYTES) -> None:
    """Remove the least recently used modules for processors until all take at most `most` bytes."""
    modules = entries(folder)
    total = sum(one.size for one in modules)
    if total <= most:
        return
    for one in modules:
        if total <= LEFT * most:
            break
        _remove(one.file)
        total -= one.size


def clear(folder: Path) -> None:
    """Remove the compiled code of a folder, and no other files."""
    for file in _module_files(folder):
        _remove(file)
    shutil.rmtree(folder / GPU_CODE, ignore_errors=True)
    for emptied in (folder / "__pycache__", folder):
        with suppress(OSError):  # the folder has other files
            emptied.rmdir()


def _module_files(folder: Path) -> list[Path]:
    """Also those that older versions left in a folder within."""
    places = (folder, folder / "__pycache__")
    return [file for place in places for file in place.glob("peergrid_*") if file.is_file()]


def _entry(file: Path) -> Entry:
    try:
        found = file.stat()
    except OSError:  # another process removed it
        return Entry(file, 0, 0.0)
    return Entry(file, found.st_size, found.st_mtime)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
