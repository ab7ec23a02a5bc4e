"""Ranks that are killed, stopped, interrupted or fail at random moments: all processes end, with a sentence.

    python benchmarks/rank_faults.py --times 50
    python benchmarks/rank_faults.py --times 12 --ranks 2 --devices cuda --strategies overlap,peer,persistent

Each time three ranks run on one host until one of them is killed (SIGKILL), stopped (SIGSTOP; the others notice
silence after a second), fails by an exception, or all are interrupted (SIGINT, as Ctrl-C sends it); or on two hosts
(network namespaces, where they can be made) until the wire between them is cut. All processes must be gone five seconds
after the fault was noticed, and no memory that ranks shared may be left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from record import about, save

APP = Path(__file__).parents[1] / "tests" / "runtime" / "ranks_app.py"
sys.path.append(str(APP.parent))

from launchers import MPICH, Hosts, two_hosts  # noqa: E402

FAULTS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "failed": signal.SIGUSR1, "interrupted": signal.SIGINT}
CUT = "cut"
SAID = {
    "killed": r"KILLED BY|signal 9|Killed",  # by the launcher
    "stopped": r"rank \d on \S+: .*(Nothing moved for 1 s|waited too long|never took effect|did not finish)",
    "failed": r"planted",
    "interrupted": r"",
    "cut": r"rank \d on \S+: .*(Nothing moved for 1 s|waited too long)",
}
NOTICE = {"stopped": 1.0, "cut": 1.0}  # seconds of silence
LEAVE = 5.0


def alive(pids: list[int]) -> Iterator[int]:
    for pid in pids:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        yield pid


def shared_memory() -> set[str]:
    """Names of shared memory, of MPI's ranks and ours, that no process has mapped."""
    names = {path.name for path in Path("/dev/shm").iterdir() if re.match("mpich|ucx|sm_segment|peergrid", path.name)}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            names -= set(re.findall(r"/dev/shm/(\S+)", maps.read_text()))
    return names


def trial(
    fault: str, victim: int, moment: float, ranks: int, devices: str, strategy: str, hosts: Hosts | None
) -> dict[str, Any]:
    """One run that ends by a fault after so many seconds; what was found."""
    line = MPICH.command(ranks, hosts if fault == CUT else None)
    line += [sys.executable, str(APP), "endless", *map(json.dumps, (devices, strategy))]
    before = shared_memory()
    run = subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=MPICH.environment(),
        start_new_session=True,
    )
    assert run.stdout is not None
    pids, lines = list[int](), list[str]()
    facts = {"fault": fault, "rank": victim, "moment": moment, "devices": devices, "strategy": strategy}
    while len(pids) < ranks:
        lines.append(run.stdout.readline())
        if not lines[-1]:
            raise RuntimeError("the ranks ended before they had begun:\n" + "".join(lines))
        pids += [int(text) for text in re.findall(r"begun (\d+)", lines[-1])]
    time.sleep(moment)
    if fault == CUT:
        assert hosts is not None
        wire(hosts, "down")
    else:
        os.kill(run.pid if fault == "interrupted" else pids[victim], FAULTS[fault])
    began = time.monotonic()
    try:
        rest, _ = run.communicate(timeout=30)
        ended = time.monotonic() - began
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        return {**facts, "ended": None, "left": len(list(alive(pids)))}
    while list(alive(pids)) and time.monotonic() - began - ended < LEAVE:
        time.sleep(0.02)
    left = list(alive(pids))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    said = re.search(SAID[fault], "".join(lines) + rest) is not None
    gone, shared = time.monotonic() - began - NOTICE.get(fault, 0.0), sorted(shared_memory() - before)
    told = next((line for line in rest.splitlines() if line.startswith("rank ")), "")[:200]
    found = {"ended": ended, "gone": gone, "code": run.returncode, "said": said, "told": told}
    return {**facts, **found, "left": len(left), "shared": shared}


def wire(hosts: Hosts, state: str) -> None:
    """Cut the wire between two hosts ('down'), or lay it again ('up')."""
    subprocess.run(["ip", "-n", hosts.spaces[0], "link", "set", "net0", state], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--devices", default="cpu:1")
    parser.add_argument("--strategies", default="overlap")
    parser.add_argument("--dry", action="store_true", help="record nothing")
    given = parser.parse_args()
    draw, trials = random.Random(given.seed), list[dict[str, Any]]()
    strategies = given.strategies.split(",")
    with two_hosts() as hosts:
        faults = [*FAULTS, *([CUT] if hosts and given.devices.startswith("cpu") else [])]
        for number in range(given.times):
            fault, strategy = faults[number % len(faults)], strategies[number // len(faults) % len(strategies)]
            victim, moment = draw.randrange(given.ranks), round(draw.random(), 3)
            trials.append(trial(fault, victim, moment, given.ranks, given.devices, strategy, hosts))
            if fault == CUT:
                wire(hosts, "up")
            print(trials[-1], flush=True)
    wrong = [one for one in trials if one["ended"] is None or one["left"] or one["shared"] or not one["said"]]
    wrong += [one for one in trials if one not in wrong and one["gone"] > LEAVE]
    if not given.dry:
        name = "rank_faults" if given.devices.startswith("cpu") else "rank_faults_gpu"
        save(name, {**about(("peergrid", "mpi4py", "mpich")), "wrong": len(wrong), "trials": trials})
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
