"""The cases of `peergrid bench` with two versions of the sources, in turns: what a change costs or gains.

    python benchmarks/cuda/commits.py --before DIR [--after DIR] [--suites jacobi,fdtd,small,own,ladder] [--counts 1,2]
        [--only WORD,...] [--rounds 2] [--seconds 500] [--kind cuda|cpu] [--out commits.json]

DIR: a folder with the sources of a commit, as `git archive COMMIT src .git_archival.txt` leaves it (default of
`--after`: this checkout). Each version runs in a process of its own, which measures a case whenever it is its turn:
before, after, after, before, … Samples are those of `peergrid bench`; the median of all samples of a version counts.
The record is valid at any moment; cases that do not fit into the time are counted in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("before", "after")


def worker(root: Path) -> None:
    """Measure the cases named on standard input, a line of JSON each; answer with a line each."""
    sys.path[:0] = [str(root / "src")]
    from peergrid.bench.commit import commit
    from peergrid.bench.measure import measure
    from peergrid.runtime.devices import parse_devices

    print(json.dumps({"commit": commit(root)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        count, kind = asked["count"], asked["kind"]
        devices = parse_devices(f"cpu:{count}" if kind == "cpu" else "cuda:" + ",".join(map(str, range(count))))
        case = next(c for c in suite(asked["suite"], kind, (count,)) if (c.series, c.count) == (asked["series"], count))
        try:
            (row,) = measure([case], devices, None)
            answer = {"samples": row.samples, "depth": row.options.depth, "notes": row.notes}
        except Exception as error:  # whatever a version cannot do is a result, too
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def suite(name: str, kind: str, counts: tuple[int, ...]) -> Iterator[Any]:
    """The cases of a suite: large ones for GPUs, little ones for virtual devices."""
    from peergrid.bench.suites import LARGE, LITTLE, SUITES

    return SUITES[name].cases(LARGE if kind == "cuda" else LITTLE, counts)


class Version:
    """One version of the sources in a process of its own."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, __file__, "--worker", str(root.resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.commit = self._answer()["commit"]

    def measure(self, case: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise SystemExit("A version's process ended; what it printed says why.")


def compare(versions: dict[str, Version], case: dict[str, Any], rounds: int) -> dict[str, Any]:
    """A case with both versions in turns, the order reversed in every other round."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in VERSIONS}
    for number in range(rounds):
        for name in VERSIONS[:: -1 if number % 2 else 1]:
            found[name].append(versions[name].measure(case))
    row: dict[str, Any] = dict(case)
    for name, answers in found.items():
        samples = [sample for answer in answers for sample in answer.get("samples", ())]
        row[name] = {"seconds_per_step": median(samples) if samples else None, **answers[-1], "samples": samples}
    times = [row[name]["seconds_per_step"] for name in VERSIONS]
    return {**row, "rate_of_before": times[0] / times[1] if all(times) else None}


def cases(suites: list[str], kind: str, counts: list[int], only: list[str]) -> Iterator[dict[str, Any]]:
    """What is to be compared: each suite's cases on so many devices."""
    for name in suites:
        for case in suite(name, kind, tuple(counts)):
            if case.count in counts and not case.sustained and (not only or any(word in case.series for word in only)):
                yield {"suite": name, "series": case.series, "count": case.count, "kind": kind}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, default=ROOT)
    parser.add_argument("--suites", default="jacobi,fdtd,small,own,ladder")
    parser.add_argument("--counts", default="1,2")
    parser.add_argument("--only", default="", help="only series with one of these words in their name")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=500.0, help="no case is begun after so many")
    parser.add_argument("--kind", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]
    from record import about

    began = time.monotonic()
    counts = [int(n) for n in given.counts.split(",")]
    wanted = list(cases(given.suites.split(","), given.kind, counts, _words(given.only)))
    versions = {name: Version(getattr(given, name)) for name in VERSIONS}
    rows: list[dict[str, Any]] = []
    circumstances = about(("peergrid", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
    for case in wanted:
        if time.monotonic() - began > given.seconds:
            break
        rows.append(row := compare(versions, case, given.rounds))
        share = row["rate_of_before"]
        print(f"{case['suite']} {case['series']} on {case['count']}: ", end="")
        print(f"{row['after']['seconds_per_step'] * 1e6:.3f} µs, {share:.1%}" if share else row, flush=True)
        if given.out:
            commits = {name: version.commit for name, version in versions.items()}
            head = {"about": circumstances, "commits": commits, "not_reached": len(wanted) - len(rows)}
            given.out.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n")
    for version in versions.values():
        version.close()


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(Path(sys.argv[2]))
    else:
        main()
