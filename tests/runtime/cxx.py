"""C++ text as shared libraries: compiled once for each text, and what many texts begin with once for all of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

COMPILER = shutil.which("g++")
FOLDER = Path(tempfile.gettempdir()) / "peergrid-host-kernels"
OPTIONS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fPIC", "-w")


def library(head: str, text: str) -> Path:
    """The library of a text that begins with `head`."""
    path = FOLDER / f"{_name(head + text)}.so"
    if not path.exists():
        header, source = _precompiled(head), path.with_suffix(".cpp")
        source.write_text(text)
        _compile(path, "-shared", "-include", str(header), str(source))
    return path


@cache
def _precompiled(head: str) -> Path:
    """A header with its precompiled form beside it."""
    FOLDER.mkdir(exist_ok=True)
    header = FOLDER / f"{_name(head)}.hpp"
    made = header.with_suffix(".hpp.gch")
    if not made.exists():
        header.write_text(head)
        _compile(made, "-x", "c++-header", str(header))
    return header


def _compile(target: Path, *more: str) -> None:
    """Compile under a name of this process's own, so that others never see half of a file."""
    part = target.with_suffix(f".{os.getpid()}")
    subprocess.run([str(COMPILER), *OPTIONS, *more, "-o", str(part)], check=True, capture_output=True, text=True)
    part.replace(target)


def _name(text: str) -> str:
    return hashlib.sha256(" ".join((*OPTIONS, text)).encode()).hexdigest()[:24]
