"""The circumstances of a recorded result: the command, the hardware, the versions, the date, the commit."""

from __future__ import annotations

import platform
import re
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from peergrid.bench.commit import commit
from peergrid.machine import discover

PACKAGES = ("peergrid", "numpy", "numba", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")


@dataclass(frozen=True)
class Circumstances:
    """The machine, versions and time of a measurement; commit: '' if unknown; missing packages are left out."""

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
        command=shlex.join(["peergrid", *_command_line(sys.argv[1:])]),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=commit(),
        hardware=machine.label,
        gpus=tuple(gpu.name for gpu in machine.gpus),
        driver=str(getattr(machine.software, "driver", "") or ""),
        versions=versions,
    )


def _command_line(words: list[str]) -> list[str]:
    """The command line without the folder of the results, which is private."""
    kept = [word for word, before in zip(words, ["", *words], strict=False) if before not in ("-o", "--output")]
    return [word for word in kept if not re.match(r"-o|--output", word)]
