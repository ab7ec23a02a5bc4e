"""A survey on one GPU and on several: seconds of the whole job, and from trace to trace once all workers are at work.

    python benchmarks/cuda/surveys.py [--devices 'cuda:0/1/1;cuda:0,1/1/2;cuda:0,1'] [--traces 60] [--out surveys.json]

A trace is a whole run of `examples/gpr.toml` with its antennas elsewhere. Devices are named with how many of them work
on each trace and how many processes there are: `cuda:0,1/1/2` gives each trace one of two GPUs, by a process each,
`cuda:0/1/3` lets three processes share a GPU; without numbers what is predicted to be fastest is chosen. A first survey
of two traces, not counted, leaves compiled kernels in the cache, as any earlier run would. `seconds` is from the call
to the last trace kept, with the start of the processes; `seconds_per_trace` from when each may have had its first to
the last of all.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.jobs.folder import Folder  # noqa: E402
from peergrid.jobs.requested import RequestedOptions  # noqa: E402
from peergrid.jobs.share import Share  # noqa: E402
from peergrid.jobs.survey import survey_of  # noqa: E402
from peergrid.models import read  # noqa: E402
from peergrid.models.fdtd import RadarModel  # noqa: E402
from peergrid.models.fdtd.model import Output  # noqa: E402
from peergrid.models.survey import Positions  # noqa: E402
from peergrid.runtime.devices import parse_devices  # noqa: E402

MODEL = "examples/gpr.toml"
WIDTH = 1.6  # metres over which the traces are spread


def surveyed(traces: int) -> RadarModel:
    """The model with one receiver, at so many places."""
    model = read(ROOT / MODEL)
    assert isinstance(model, RadarModel)
    at = [WIDTH * number / traces for number in range(traces)]
    places = Positions(tuple((0.35 + x, 0.92) for x in at), tuple((0.43 + x, 0.92) for x in at))
    return replace(model, survey=places, receiver_arrays=(), output=Output(pictures=False))


def measured(word: str, traces: int) -> dict[str, Any]:
    """One survey; word: devices, how many of them for each trace, and how many processes."""
    spec, *numbers = word.split("/")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        job = survey_of(surveyed(traces), Folder(Path(folder)), RequestedOptions(parse_devices(spec)))
        if numbers:
            job = replace(job, share=Share(int(numbers[0]), min(traces, int(numbers[1]))))
        ends, shots = list[float](), []
        for _, shot in job.make_traces(list(range(traces)), lambda: False):
            ends.append(time.perf_counter() - started)
            shots.append(shot)
        digest, _ = job.merge()
    workers = job.share.at_once
    return {
        "devices": spec,
        "devices_per_trace": job.share.each,
        "workers": workers,
        "traces": traces,
        "seconds": ends[-1],
        "seconds_per_trace": (ends[-1] - ends[workers - 1]) / max(1, traces - workers),
        "first_trace": ends[0],
        "stepping": median(shot.seconds for shot in shots),
        "predicted_seconds": job.share.seconds,
        "strategy": shots[0].options.options.strategy,
        "depth": shots[0].options.options.depth,
        "sha256": digest,
    }


def line(row: dict[str, Any]) -> str:
    predicted = "" if row["predicted_seconds"] is None else f", {row['predicted_seconds']:.2f} s predicted"
    return (
        f"{row['devices']}, {row['devices_per_trace']} for each trace, {row['workers']} workers: {row['traces']} "
        f"traces in {row['seconds']:.2f} s{predicted}, the first after {row['first_trace']:.2f}; then "
        f"{row['seconds_per_trace']:.3f} s a trace, {row['stepping']:.3f} s of it stepping "
        f"({row['strategy']}, depth {row['depth']})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda:0/1/1;cuda:0,1/1/2;cuda:0,1")
    parser.add_argument("--traces", type=int, default=60)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    for word in asked.devices.split(";"):
        if not found:
            measured(word, 2)  # the kernels are compiled by then
        found.append(measured(word, asked.traces))
        print(line(found[-1]), flush=True)
        if asked.out:
            report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "model": MODEL}
            asked.out.write_text(json.dumps({**report, "rows": found}, indent=1) + "\n")
    if len({row["sha256"] for row in found}) > 1:
        raise SystemExit("The traces are expected to have the same bits on all devices, and have not.")


if __name__ == "__main__":
    main()
