"""A power failure, emulated: what nobody waited for is lost.

A process that `notes` keeps, beside its folder, what a disk must keep: the contents of a file when it was last
synchronised, the names of a folder when that was. `fail` puts the folder into that state: names that were not
synchronised are as before, and files that never were are empty.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

NAMES = "names.json"


def notes(folder: Path, disk: Path) -> None:
    """From now on keep what this process synchronises below a folder; what is there is taken to be on the disk."""
    disk.mkdir()
    names: dict[str, dict[str, int]] = {}
    for place, _, files in os.walk(folder):
        names[place] = _names(place)
        for file in files:
            _keep(Path(place) / file, disk)
    _note(disk, names)
    synchronise = os.fsync

    def fsync(opened: int) -> None:
        synchronise(opened)
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            names[str(path)] = _names(str(path))
            _note(disk, names)
        else:
            _keep(path, disk)

    os.fsync = fsync  # type: ignore[assignment]


def fail(folder: Path, disk: Path) -> None:
    """Put a folder into the state that its disk kept."""
    names: dict[str, dict[str, int]] = json.loads((disk / NAMES).read_text())
    shutil.rmtree(folder)
    _restore(str(folder), names, disk)


def _restore(place: str, names: dict[str, dict[str, int]], disk: Path) -> None:
    os.makedirs(place, exist_ok=True)
    for name, number in names.get(place, {}).items():
        path, kept = os.path.join(place, name), disk / str(number)
        if number < 0:
            _restore(path, names, disk)
        elif kept.exists():
            shutil.copyfile(kept, path)
        else:
            Path(path).touch()  # a name without contents


def _names(place: str) -> dict[str, int]:
    """The names in a folder with the numbers of their files; -1 for folders."""
    return {one.name: -1 if one.is_dir() else one.inode() for one in os.scandir(place)}


def _keep(path: Path, disk: Path) -> None:
    """The contents of a file, whole or as they were."""
    draft = disk / "draft"
    shutil.copyfile(path, draft)
    os.replace(draft, disk / str(path.stat().st_ino))


def _note(disk: Path, names: dict[str, dict[str, int]]) -> None:
    draft = disk / "names.draft"
    draft.write_text(json.dumps(names))
    os.replace(draft, disk / NAMES)
