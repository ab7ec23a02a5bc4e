"""The texts of a run's programs in a folder, for people and profilers."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.files import draft

KERNEL = re.compile(r"__global__ void\s+(?:__\w+__\([^)]*\)\s+)?(\w+)\(")


def written(folder: Path, source: str) -> Path:
    """The file of a text, named after its first kernel and by what is in it, so that other texts have other files.

    Raises UsageError where the folder cannot be written to.
    """
    found = KERNEL.search(source)
    name = found[1] if found else "program"
    path = folder.absolute() / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}.cu"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft(path) as part:
            part.write_text(source, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Sources of kernels cannot be kept in {folder}: {error.strerror}.") from None
    return path
