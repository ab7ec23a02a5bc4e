"""What every recorded result carries: the command, the hardware, the versions, the date, the commit."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from peergrid.machine import discover

PACKAGES = ("peergrid", "numpy", "numba", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")


@dataclass(frozen=True)
class Circumstances:
    """Where and when a measurement was made; commit: '' outside a checkout; absent packages are left out."""

    command: str
    date: str
    commit: str
    hardware: str
    gpus: tuple[str, ...]
    driver: str
    versions: dict[str, str]


def about() -> Circumstances:
    """The circumstances of this process."""
    machine = discover()
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return Circumstances(
        command=shlex.join(["peergrid", *sys.argv[1:]]),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=_commit(),
        hardware=machine.label,
        gpus=tuple(gpu.name for gpu in machine.gpus),
        driver=str(getattr(machine.software, "driver", "") or ""),
        versions=versions,
    )


def _commit() -> str:
    """The commit of the checkout that this file lies in, '-dirty' where files differ from it."""
    here = Path(__file__).parent
    head = _git(here, "rev-parse", "HEAD")
    return head + ("-dirty" if head and _git(here, "status", "--porcelain", ".") else "")


def _git(where: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
