"""What every recorded result carries: the command, the hardware, the versions, the date, the commit."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from peergrid.bench.commit import commit
from peergrid.files import replacing
from peergrid.machine import discover

RESULTS = Path(__file__).resolve().parent / "results"


def about(packages: tuple[str, ...] = ("peergrid", "numpy", "numba")) -> dict[str, Any]:
    """The circumstances of a measurement."""
    return {
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "hardware": {**_gpus(), "cpu": _cpu(), "cores": len(os.sched_getaffinity(0)), "system": platform.system()},
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in packages}},
    }


def save(name: str, found: dict[str, Any]) -> Path:
    """Replace a result under `benchmarks/results`."""
    path = RESULTS / f"{name}.json"
    with replacing(path) as partial:
        partial.write_text(json.dumps(found, indent=2) + "\n")
    return path


def _gpus() -> dict[str, str]:
    found = Counter(gpu.name for gpu in discover().gpus)
    return {"gpus": ", ".join(f"{count} × {name}" for name, count in found.items())} if found else {}


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
