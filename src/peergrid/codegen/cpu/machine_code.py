"""Machine code that Numba keeps in a folder: taken from a private folder alone, and as it was written."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numba.core import config

from peergrid.codegen.cache import keep_within

OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class MachineCode:
    """The files of one generated module in a folder, with a file of their checksums beside."""

    folder: Path
    name: str

    def check(self) -> None:
        """Remove what is not as it was noted, so that it is compiled anew.

        Raises OSError where others may write to the folder: what lies in it is executed.
        """
        make_private(self.folder)
        if self._sums() != self._noted():
            for file in self._files():
                file.unlink(missing_ok=True)

    def note(self) -> None:
        """Keep the checksums of what is there now; where that fails it is compiled anew the next time."""
        sums = self._sums()
        with suppress(OSError):
            if sums != self._noted():
                replace_file(self._list, json.dumps(sums).encode())
                keep_within(self.folder)
            else:
                os.utime(self._list)  # used now

    @property
    def _list(self) -> Path:
        return self.folder / f"{self.name}.sums"

    def _files(self) -> list[Path]:
        """The files of Numba: beside the source, or in the folder that its settings name."""
        elsewhere = getattr(config, "CACHE_DIR", "")
        places = [self.folder / "__pycache__", *([Path(elsewhere)] if elsewhere else [])]
        return sorted(file for place in places for file in place.rglob(f"{self.name}.*.nb[ci]"))

    def _sums(self) -> dict[str, str]:
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in self._files()}

    def _noted(self) -> object:
        try:
            return json.loads(self._list.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}


def make_private(folder: Path) -> None:
    """Make a folder for machine code, if it is not there. Raises OSError where others may write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & OTHERS:
        raise PermissionError(f"{folder} is not this user's alone")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
