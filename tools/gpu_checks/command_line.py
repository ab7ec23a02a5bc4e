"""The command line on GPUs: every strategy runs to one digest, draws a timeline, says what communication it exposes."""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from gpu_checks.call import ROOT, peergrid
from gpu_checks.report import Case, Report, carry_out

MODEL = str(ROOT / "examples" / "gpr.toml")
STEPS = 1000  # so many that one early period may be measured
LIMIT = 60.0  # seconds of a call


def command_line(report: Report, counts: list[int]) -> None:
    """`run --json` and `trace` under every strategy."""
    from peergrid.schedule.strategies import STRATEGIES

    devices = "cuda:0,1" if counts[-1] > 1 else "cuda:0,0"
    cases = {f"run {strategy} {devices}": partial(_run, strategy, devices) for strategy in STRATEGIES}
    cases |= {f"trace {strategy} {devices}": partial(_trace, strategy, devices) for strategy in STRATEGIES}
    with ThreadPoolExecutor(max(2, min(len(cases), (os.cpu_count() or 2) // 3))) as pool:
        found = list(pool.map(carry_out, cases, cases.values()))
    for case in found:
        report.add(case)
    digests = {case["sha256"] for case in found if "sha256" in case}
    report.run("one digest", lambda: _one(digests))


def _run(strategy: str, devices: str) -> Case:
    words = ("--devices", devices, "--strategy", strategy, "--steps", str(STEPS), "--no-write", "--json")
    done = peergrid("run", MODEL, *words, limit=LIMIT)
    if done.code != 0:
        raise AssertionError(f"exit {done.code} after {done.seconds:.0f} s: {done.text[-1000:]}")
    found = json.loads(done.out)
    if found["exposed_communication"] is None or not 0 <= found["exposed_communication"] <= 1:
        raise AssertionError(f"exposed_communication is {found['exposed_communication']}")
    kept = ("sha256", "depth", "gcells_per_s", "exposed_communication")
    notes = [line for line in done.err.splitlines() if line.startswith("note: ")]
    return {**{key: found[key] for key in kept}, "notes": notes}


def _trace(strategy: str, devices: str) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.json"
        words = ("--devices", devices, "--strategy", strategy, "-o", str(path), "--json")
        done = peergrid("trace", MODEL, *words, limit=LIMIT)
        if done.code != 0:
            raise AssertionError(f"exit {done.code} after {done.seconds:.0f} s: {done.text[-1000:]}")
        events = json.loads(path.read_text())["traceEvents"]
    found, bars = json.loads(done.out), [event for event in events if event["ph"] == "X"]
    computing = {bar["pid"] for bar in bars if bar["cat"] == "compute"}
    if computing != {0, 1} or len(bars) != found["operations"]:
        raise AssertionError(f"{len(bars)} bars of {found['operations']} operations; devices that compute: {computing}")
    return {"bars": len(bars), "exposed_communication": found["exposed_communication"], "notes": found["notes"]}


def _one(digests: set[str]) -> Case:
    if len(digests) != 1:
        raise AssertionError(f"{len(digests)} digests: {sorted(digest[:12] for digest in digests)}")
    return {"sha256": digests.pop()[:12]}
