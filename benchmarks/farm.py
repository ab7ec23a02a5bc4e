"""`peergrid farm` beside GNU parallel and beside waves (farm.json), and a campaign of kills (farm_kills.json).

Waves: as many jobs as there are slots are started, and all waited for before the next are. The jobs sleep, so that the
processors do not matter.

python benchmarks/farm.py beside|kills [--rounds N] [--kills N] [--jobs N] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from record import about, save

SLOTS = 4
FARM = [sys.executable, "-m", "peergrid", "farm", "--slots", f"cpu:{SLOTS}"]
WAVES = f'n=0; while read -r job; do "$@" "$job" & n=$((n + 1)); [ $((n % {SLOTS})) != 0 ] || wait; done; wait'
JOB = """echo begin {} >>ledger; sleep {time}
if [ $(({} % 7)) = 0 ] && [ ! -e failed-{} ]; then touch failed-{}; echo fail {} >>ledger; exit 3; fi
echo end {} >>ledger"""


def seconds(command: list[str], inputs: list[str], folder: Path) -> float:
    """The time of one command over the inputs, which it reads."""
    started = time.monotonic()
    subprocess.run(command, cwd=folder, input="\n".join(inputs) + "\n", text=True, check=True, capture_output=True)
    return time.monotonic() - started


def beside(inputs: list[str], program: str, rounds: int) -> dict[str, Any]:
    """Medians of the three ways in turns."""
    ways = {
        "farm": [*FARM, "--", program, "{}"],
        "GNU parallel": ["parallel", f"-j{SLOTS}", program],
        "waves": ["bash", "-c", WAVES, "waves", program],
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            if name != "GNU parallel" or shutil.which("parallel"):
                with tempfile.TemporaryDirectory() as folder:
                    found[name].append(seconds(command, inputs, Path(folder)))
    return {name: round(statistics.median(times), 3) for name, times in found.items() if times}


def uneven(rounds: int, draw: random.Random) -> dict[str, Any]:
    """48 jobs of uneven lengths."""
    lengths = [round(0.25 * draw.lognormvariate(0, 1), 3) for _ in range(48)]
    found = beside([str(length) for length in lengths], "sleep", rounds)
    return {"jobs": len(lengths), "seconds": found, "least": round(max(sum(lengths) / SLOTS, *lengths), 3)}


def short(rounds: int) -> dict[str, Any]:
    """What a job costs: 400 that do nothing."""
    return {"jobs": 400, "seconds": beside([str(n) for n in range(400)], "true", rounds)}


def campaign(jobs: int, kills: int, draw: random.Random) -> dict[str, Any]:
    """A farm of jobs of which every seventh fails at first, ended in random ways until all are done."""
    with tempfile.TemporaryDirectory() as name:
        folder, ends, farms = Path(name), Counter[str](), 0
        inputs = [str(number) for number in range(1, jobs + 1)]
        script = JOB.replace("{time}", f"0.$(({{}} * 7919 % 300 + {kills * 2}))")
        command = [*FARM, "--json", "--retries", "3", "--resume", "-i", *inputs, "--", "sh", "-c", script]
        while True:
            farms += 1
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            if sum(ends.values()) < kills:
                end(process, folder, draw, ends)
            out, _ = process.communicate()
            if process.returncode == 0 and json.loads(out)["done"] == jobs:
                return {"farms": farms, "ends": dict(ends), **judged(folder, jobs)}


def end(process: subprocess.Popen[str], folder: Path, draw: random.Random, ends: Counter[str]) -> None:
    """End a farm, or one of its jobs, after a random time."""
    began = len(ledger(folder))
    while process.poll() is None and len(ledger(folder)) == began:
        time.sleep(0.02)
    time.sleep(draw.uniform(0, 1.0))
    how = draw.choice(("kill the farm", "Ctrl-C", "Ctrl-C twice", "kill a job"))
    if process.poll() is not None:
        return
    ends[how] += 1
    if how == "kill the farm":
        process.kill()
    elif how == "kill a job":
        children = [int(text) for text in children_of(process.pid)]
        if children:
            os.killpg(draw.choice(children), signal.SIGKILL)
        end(process, folder, draw, ends)
    else:
        process.send_signal(signal.SIGINT)
        if how == "Ctrl-C twice":
            time.sleep(0.3)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def ledger(folder: Path) -> list[str]:
    file = folder / "ledger"
    return file.read_text().splitlines() if file.exists() else []


def judged(folder: Path, jobs: int) -> dict[str, int]:
    """Lost: without an end. Twice: with two ends."""
    events = [line.split() for line in ledger(folder)]
    ended = Counter(job for event, job in events if event == "end")
    starts = Counter(job for event, job in events if event == "begin")
    return {
        "jobs": jobs,
        "starts": sum(starts.values()),
        "failures": sum(event == "fail" for event, _ in events),
        "lost": sum(not ended[str(number)] for number in range(1, jobs + 1)),
        "twice": sum(count > 1 for count in ended.values()),
        "begun after their end": sum(
            any(event == "begin" and job == one for event, one in events[last_end(events, job) :]) for job in ended
        ),
    }


def last_end(events: list[list[str]], job: str) -> int:
    return next(k for k, (event, one) in enumerate(events) if event == "end" and one == job)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("beside", "kills"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    found: dict[str, Any] = {**about(("peergrid",)), "slots": SLOTS}
    if given.part == "kills":
        found |= campaign(given.jobs, given.kills, draw)
    else:
        found |= {"uneven": uneven(given.rounds, draw), "short": short(given.rounds)}
    print(json.dumps(found, indent=1))
    print(save("farm" if given.part == "beside" else "farm_kills", found))


if __name__ == "__main__":
    main()
