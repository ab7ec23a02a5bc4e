"""NVIDIA's samples of Jacobi on several GPUs, built and run here, in turns with peergrid's on the same GPUs.

    python benchmarks/cuda/nvidia_samples.py --sources DIR --commit HASH [--counts 1,2,4,8] [--sizes 17408,4096,2048]
        [--rounds 3] [--seconds 120] [--out nvidia_samples.json]

DIR: the sources of NVIDIA's multi-gpu-programming-models at the commit HASH. The programs that need neither MPI nor
NCCL nor NVSHMEM are compiled by nvcc for this GPU with their own options; those that fail to compile are named in the
record. Each runs 1,000 steps from its own first values, with the norm of every step and, where it can, of the last step
alone; `samples` are the seconds that it prints, one of each round, `seconds` the least. peergrid's rows are samples of
`peergrid bench` made in the same round, given as the seconds of 1,000 steps. The record is valid at any moment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.bench.measure import Case, measure  # noqa: E402
from peergrid.bench.problems import jacobi  # noqa: E402
from peergrid.runtime.devices import Devices  # noqa: E402

STEPS = 1000
PROGRAMS = {
    "single_gpu": (1,),
    "single_threaded_copy": (1, STEPS),
    "multi_threaded_copy": (1, STEPS),
    "multi_threaded_copy_overlap": (1, STEPS),
    "multi_threaded_p2p": (1, STEPS),
    "multi_threaded_p2p_opt": (1,),
}
"""Programs, and the numbers of steps from one norm to the next that each accepts."""

OPTIONS = ("-O3", "-DHAVE_CUB", "-std=c++17", "-Xcompiler", "-fopenmp", "-lineinfo", "-arch=native")
OURS: dict[str, dict[str, Any]] = {
    "peergrid, one step per pass": {"depth": 1},
    "peergrid, several steps per pass": {"depth": 0},
    "peergrid, several steps per pass, norms": {"depth": 0, "norm": "u"},
}


def built(sources: Path, folder: Path, programs: list[str]) -> dict[str, str]:
    """Compile all programs at once; the errors of those that do not compile."""
    jobs = {
        name: subprocess.Popen(
            ["nvcc", *OPTIONS, str(sources / name / "jacobi.cu"), "-o", str(folder / name), "-ldl"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in programs
    }
    said = {name: job.communicate()[1] for name, job in jobs.items()}
    return {name: said[name][-500:] for name, job in jobs.items() if job.returncode}


def seconds(program: Path, size: int, every: int, count: int) -> float:
    """The time that a program prints for its steps on so many GPUs; that of a run on one GPU comes after it."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))}
    given = [str(program), "-csv", "-niter", str(STEPS), "-nccheck", str(every), "-nx", str(size), "-ny", str(size)]
    done = subprocess.run(given, env={**os.environ, **visible}, capture_output=True, text=True, timeout=60, check=True)
    numbers = done.stdout.strip().splitlines()[-1].split(",")
    return float(numbers[-1 if program.name == "single_gpu" else -2])


def theirs(folder: Path, programs: list[str], size: int, count: int) -> Iterator[tuple[str, int, float]]:
    for name in programs:
        if name != "single_gpu" or count == 1:
            for every in PROGRAMS[name]:
                yield name, every, seconds(folder / name, size, every, count)


def ours(size: int, count: int) -> Iterator[tuple[str, int, float]]:
    devices = Devices("cuda", tuple(range(count)))
    for name, given in OURS.items():
        case = Case(name, partial(jacobi, size, size), count, "overlap", steps=200, base=name, **given)
        (row,) = measure([case], devices, None)
        yield name, 1 if "norm" in given else STEPS, median(row.samples) * STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="of the sources")
    parser.add_argument("--counts", default="1")
    parser.add_argument("--sizes", default="17408,4096,2048")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0, help="nothing is begun after so many")
    parser.add_argument("--out", type=Path, default=Path("nvidia_samples.json"))
    given = parser.parse_args()
    began, folder = time.monotonic(), given.out.resolve().parent / "nvidia_samples"
    folder.mkdir(parents=True, exist_ok=True)
    failed = built(given.sources, folder, list(PROGRAMS))
    programs = [name for name in PROGRAMS if name not in failed]
    source = {"program": "NVIDIA multi-gpu-programming-models", "commit": given.commit, "options": " ".join(OPTIONS)}
    rows: dict[tuple[int, int, str, int], list[float]] = {}
    for _ in range(given.rounds):
        for size in map(int, given.sizes.split(",")):
            for count in map(int, given.counts.split(",")):
                for measured in (theirs(folder, programs, size, count), ours(size, count)):
                    if time.monotonic() - began > given.seconds:
                        continue
                    for name, every, took in measured:
                        rows.setdefault((size, count, name, every), []).append(took)
                        print(size, count, name, every, f"{took:.4f} s", flush=True)
                found = {"about": about(), "samples": source, "not_built": failed, "rows": list(_rows(rows))}
                given.out.write_text(json.dumps(found, indent=1))
    shutil.rmtree(folder)


def _rows(rows: dict[tuple[int, int, str, int], list[float]]) -> Iterator[dict[str, Any]]:
    for (size, count, name, every), samples in rows.items():
        yield {
            "size": size,
            "steps": STEPS,
            "norm_every": every,
            "gpus": count,
            "program": name,
            "seconds": min(samples),
            "samples": samples,
            "gcells_per_s": 1e-9 * size**2 * STEPS / min(samples),
        }


if __name__ == "__main__":
    main()
