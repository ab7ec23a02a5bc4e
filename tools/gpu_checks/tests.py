"""The tests that need a GPU, where pytest is installed."""

from __future__ import annotations

import sys

from gpu_checks.call import ROOT, call
from gpu_checks.report import Case, Report

LIMIT = 580.0  # seconds


def tests(report: Report, counts: list[int]) -> None:
    """All that are marked."""
    report.run("pytest -m gpu", _pytest)


def _pytest() -> Case:
    tests = ROOT / "tests"
    folders = [str(path) for path in (*tests.glob("*/cuda"), tests / "sparse", tests / "spins")]
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "--maxfail=6", "-p", "no:cacheprovider", *folders]
    done = call(command, LIMIT)
    tail = done.out.strip().splitlines()[-25:]
    if done.code != 0:
        raise AssertionError(f"exit {done.code}: " + "\n".join(tail) + done.err[-2000:])
    return {"summary": tail[-1] if tail else ""}
