"""The folder of compiled code: its contents, and the bound on its size."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
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
    """The files of one generated module, and when it was last used, in seconds since 1970."""

    files: tuple[Path, ...]
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
    gpu = [size for size in (_size(file) for file in (folder / GPU_CODE).rglob("*") if file.is_file()) if size]
    return Usage(folder, len(modules), sum(one.size for one in modules), len(gpu), sum(gpu))


def entries(folder: Path) -> list[Entry]:
    """The modules for processors, the least recently used first."""
    files: dict[str, list[Path]] = {}
    for file in _module_files(folder):
        files.setdefault(file.name.partition(".")[0], []).append(file)
    return sorted(map(_entry, files.values()), key=lambda one: one.used)


def keep_within(folder: Path, most: int = MOST_BYTES) -> None:
    """Remove the least recently used modules for processors until all take at most `most` bytes."""
    modules = entries(folder)
    total = sum(one.size for one in modules)
    if total <= most:
        return
    for one in modules:
        if total <= LEFT * most:
            break
        _remove(one.files)
        total -= one.size


def clear(folder: Path) -> None:
    """Remove the compiled code of a folder, and no other files."""
    _remove(tuple(_module_files(folder)))
    shutil.rmtree(folder / GPU_CODE, ignore_errors=True)
    for emptied in (folder / "__pycache__", folder):
        with suppress(OSError):  # the folder has other files
            emptied.rmdir()


def _module_files(folder: Path) -> Iterator[Path]:
    for place in (folder, folder / "__pycache__"):
        yield from (file for file in place.glob("peergrid_*") if file.is_file())


def _entry(files: list[Path]) -> Entry:
    times = [0.0]
    for file in files:
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return Entry(tuple(files), sum(map(_size, files)), max(times))


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # another process removed it
        return 0


def _remove(files: tuple[Path, ...]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink()
