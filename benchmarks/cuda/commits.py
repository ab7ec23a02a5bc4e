"""The cases of `peergrid bench` with two versions of the sources, in turns: what a change costs or gains.

    python benchmarks/cuda/commits.py --before DIR [--after DIR] [--suites jacobi,fdtd,small,own,ladder] [--counts 1,2]
        [--only WORD,...] [--without WORD,...] [--rounds 7] [--sample 0.05] [--seconds 500] [--kind cuda|cpu]
        [--out commits.json]

DIR: a folder with the sources of a commit, as `git archive COMMIT src .git_archival.txt` leaves it (default of
`--after`: this checkout). Each version runs in a process of its own. Both make a case, then samples of `--sample`
seconds come in turns, before, after, after, before, …, each after a pause as in `peergrid bench`. The median of a
version's samples counts; the first is not among them. The record is valid at any moment; cases that do not fit into the
time are counted in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from math import ceil, lcm
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("before", "after")
LONGEST = 32  # a sample takes this multiple of the steps of its case at most
REST = 3.0  # a GPU pauses before a sample for this multiple of its length, see `peergrid.bench.measure`


class Worker:
    """A version's side: one case at a time, made and then advanced as the other side says."""

    def __init__(self) -> None:
        self._simulation: Any = None
        self._problems: tuple[Any, Any] = (None, None)

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What a request gives; whatever a version cannot do is a result, too."""
        try:
            if "steps" in asked:
                return {"seconds_per_step": self._advance(asked["steps"])}
            self._close()
            return self._make(asked) if "series" in asked else {}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _make(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Make a case; the steps of its period, of a short sample, and of the longest one."""
        from peergrid.schedule import Options
        from peergrid.simulate import Simulation

        count, kind = asked["count"], asked["kind"]
        case = next(c for c in suite(asked["suite"], kind, (count,)) if (c.series, c.count) == (asked["series"], count))
        devices, problem = self._devices(kind, count), self._stored(case.make())
        options = Options(case.strategy, depth=case.depth or self._depth(devices, problem, case.norm))
        period = 2 * options.depth
        most = period * ceil(LONGEST * case.steps / period)
        steps = (asked["samples"] + 4) * most
        self._simulation = Simulation(problem, steps, devices=devices, options=options, norm=case.norm)
        notes = list(self._simulation.notes)
        return {"depth": options.depth, "period": period, "short": case.steps // 4, "most": most, "notes": notes}

    def _stored(self, problem: Any) -> Any:
        """The problem with its first values in memory; several cases in a row have the same."""
        if self._problems[0] is not problem:
            fields = {
                name: field.with_values(field.first_values()) if getattr(field, "made_by", None) else field
                for name, field in problem.fields.items()  # older versions have all values in memory
            }
            self._problems = problem, replace(problem, fields=MappingProxyType(fields))
        return self._problems[1]

    def _devices(self, kind: str, count: int) -> Any:
        from peergrid.runtime.devices import parse_devices

        return parse_devices(f"cpu:{count}" if kind == "cpu" else "cuda:" + ",".join(map(str, range(count))))

    def _depth(self, devices: Any, problem: Any, norm: str | None) -> int:
        home = "resolve" if find_spec("peergrid.resolve") else "arrange"  # the name of the module in older versions
        return int(import_module(f"peergrid.{home}").default_options(devices, problem, norm).depth)

    def _advance(self, steps: int) -> float:
        """The seconds of a step."""
        started = time.perf_counter()
        self._simulation.run(steps)
        return (time.perf_counter() - started) / steps

    def _close(self) -> None:
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = None


def worker(root: Path) -> None:
    """Answer requests on standard input, a line of JSON each, with a line each."""
    sys.path[:0] = [str(root / "src")]
    from peergrid.bench.commit import commit

    print(json.dumps({"commit": commit(root)}), flush=True)
    made = Worker()
    for line in sys.stdin:
        print(json.dumps(made.answer(json.loads(line))), flush=True)


def suite(name: str, kind: str, counts: tuple[int, ...]) -> Iterator[Any]:
    """The cases of a suite: large ones for GPUs, little ones for virtual devices."""
    from peergrid.bench.suites import LARGE, LITTLE, SUITES

    return SUITES[name].cases(LARGE if kind == "cuda" else LITTLE, counts)


class Refused(Exception):
    """What a version says of steps that it cannot make."""


class Version:
    """One version of the sources in a process of its own."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, __file__, "--worker", str(root.resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.commit = self.answer()["commit"]

    def ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest request that has none yet."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise SystemExit("A version's process ended; what it printed says why.")

    def seconds(self, steps: int) -> float:
        """The seconds of a step, over so many. Raises Refused."""
        self.ask(steps=steps)
        answer = self.answer()
        if "error" in answer:
            raise Refused(answer["error"])
        return float(answer["seconds_per_step"])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def together(versions: dict[str, Version], **request: Any) -> dict[str, dict[str, Any]]:
    """What both versions answer, at work at the same time."""
    for version in versions.values():
        version.ask(**request)
    return {name: version.answer() for name, version in versions.items()}


def compare(versions: dict[str, Version], case: dict[str, Any], rounds: int, length: float) -> dict[str, Any]:
    """A case with samples of both versions in turns, the order reversed in every other round."""
    made = together(versions, **case, samples=rounds)
    row: dict[str, Any] = {**case, "steps": None, **made, "rate_of_before": None}
    try:
        if not any("error" in one for one in made.values()):
            row["steps"] = _steps(versions, made, length)
            for name, samples in _samples(versions, row["steps"], rounds, case["kind"]).items():
                row[name] = {**made[name], "seconds_per_step": median(samples), "samples": samples}
            row["rate_of_before"] = row["before"]["seconds_per_step"] / row["after"]["seconds_per_step"]
    except Refused as error:
        row["error"] = str(error)
    together(versions)  # gives memory back
    return row


def _steps(versions: dict[str, Version], made: dict[str, dict[str, Any]], length: float) -> int:
    """Steps of a sample of so many seconds: whole periods of both versions."""
    period = lcm(*(one["period"] for one in made.values()))
    short = period * ceil(made["after"]["short"] / period)
    for version in versions.values():
        version.seconds(period)  # proves schedules and loads kernels
    seconds = min(version.seconds(short) for version in versions.values())
    most = min(one["most"] for one in made.values()) // period
    return period * max(1, min(most, ceil(length / seconds / period)))


def _samples(versions: dict[str, Version], steps: int, rounds: int, kind: str) -> dict[str, list[float]]:
    """Seconds of a step, sample by sample."""
    found: dict[str, list[float]] = {name: [] for name in VERSIONS}
    last = 0.0
    for number in range(rounds + 1):
        for name in VERSIONS[:: -1 if number % 2 else 1]:
            time.sleep(REST * last * steps if kind == "cuda" else 0.0)
            last = versions[name].seconds(steps)
            found[name].append(last)
    return {name: samples[1:] for name, samples in found.items()}


def cases(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be compared: each suite's cases on so many devices."""
    counts, only, without = tuple(map(int, _words(given.counts))), _words(given.only), _words(given.without)
    for name in _words(given.suites):
        for case in suite(name, given.kind, counts):
            said = f"{name} {case.series}"
            wanted = (not only or any(w in said for w in only)) and not any(w in said for w in without)
            if case.count in counts and not case.sustained and wanted:
                yield {"suite": name, "series": case.series, "count": case.count, "kind": given.kind}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, default=ROOT)
    parser.add_argument("--suites", default="jacobi,fdtd,small,own,ladder")
    parser.add_argument("--counts", default="1,2")
    parser.add_argument("--only", default="", help="only cases with one of these words in suite and series")
    parser.add_argument("--without", default="", help="no cases with one of these words")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each version")
    parser.add_argument("--sample", type=float, default=0.05, help="seconds of a sample")
    parser.add_argument("--seconds", type=float, default=500.0, help="no case is begun after so many")
    parser.add_argument("--kind", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]
    from record import about

    began = time.monotonic()
    wanted = list(cases(given))
    versions = {name: Version(getattr(given, name)) for name in VERSIONS}
    rows: list[dict[str, Any]] = []
    circumstances = about(("peergrid", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
    for case in wanted:
        if time.monotonic() - began > given.seconds:
            break
        rows.append(compare(versions, case, given.rounds, given.sample))
        print(f"{time.monotonic() - began:5.0f} s  {_line(rows[-1])}", flush=True)
        if given.out:
            commits = {name: version.commit for name, version in versions.items()}
            head = {"about": circumstances, "commits": commits, "not_reached": len(wanted) - len(rows)}
            given.out.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n")
    for version in versions.values():
        version.close()


def _line(row: dict[str, Any]) -> str:
    said = f"{row['suite']} {row['series']} on {row['count']}: "
    if row["rate_of_before"] is None:
        return said + row.get("error", "; ".join(f"{name}: {row[name].get('error', 'made')}" for name in VERSIONS))
    spread = max(max(row[name]["samples"]) / min(row[name]["samples"]) - 1 for name in VERSIONS)
    return f"{said}{row['after']['seconds_per_step'] * 1e6:.3f} µs, {row['rate_of_before']:.1%} (± {spread / 2:.1%})"


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(Path(sys.argv[2]))
    else:
        main()
