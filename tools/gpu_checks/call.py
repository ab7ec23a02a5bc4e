"""Programs that a section starts: one in a process group of its own, ended with all it started when its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ME = str(ROOT / "tools" / "gpu_check")


@dataclass(frozen=True)
class Ended:
    """How a program ended. code: None where its time was up."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def text(self) -> str:
        return self.out + self.err


def call(command: Sequence[str], limit: float) -> Ended:
    """Run a program for at most so many seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err, env=environment(), start_new_session=True)
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        seconds = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read(), seconds)


def peergrid(*words: str, limit: float) -> Ended:
    """The command line of peergrid."""
    return call([sys.executable, "-m", "peergrid", *words], limit)


def environment() -> dict[str, str]:
    """This process's, with peergrid on the path."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}
