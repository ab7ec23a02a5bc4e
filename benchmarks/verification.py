"""Prove every way to run the radar example, try mutants of every schedule, and record the counts.

    python benchmarks/verification.py

Runs `peergrid verify examples/gpr.toml --mutants --json` and exits as it does; writes
benchmarks/results/verification.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from record import about, save

COMMAND = ("verify", "examples/gpr.toml", "--mutants", "--json")


def main() -> int:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "peergrid", *COMMAND],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = {
        "seconds": round(time.perf_counter() - started),
        "processor_seconds": round(used.ru_utime + used.ru_stime),  # of all processes together
    }
    save("verification", {**about(), "command": f"peergrid {' '.join(COMMAND)}", **times, "found": found})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
