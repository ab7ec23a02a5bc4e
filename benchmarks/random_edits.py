"""Carry out randomly edited schedules that both checkers accept, with random delays, and compare the bits.

    python benchmarks/random_edits.py [EDITS [RUNS]]

Writes benchmarks/results/random_edits.json; exits with 1 where a run leaves other bits, or the checkers disagree.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "schedule"))

from edited_runs import cases, outcome
from record import about, save


def main(edits: int = 2000, runs: int = 200) -> int:
    started, some, tally = time.perf_counter(), list(cases()), Counter[str]()
    kinds, faults = Counter[str](), list[str]()
    for seed in range(edits):
        found = outcome(some[seed % len(some)], seed, runs)
        kinds.update(part.split()[0] for part in found.edit.split(": ", 1)[1].split("; "))
        tally["edits"] += 1
        tally["accepted"] += all(found.accepted)
        tally["rejected"] += not any(found.accepted)
        tally["disagreements"] += len(set(found.accepted)) > 1
        tally["runs"] += found.runs
        tally["wrong_runs"] += found.wrong
        if found.wrong or len(set(found.accepted)) > 1:
            faults.append(f"{seed}: {found}")
            print(faults[-1], flush=True)
        if (seed + 1) % 100 == 0:
            print(dict(tally), f"{time.perf_counter() - started:.0f} s", flush=True)
    wrong = bool(faults)
    save(
        "random_edits",
        {**about(), "schedules": len(some), "found": dict(tally), "kinds": dict(kinds), "faults": faults},
    )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
