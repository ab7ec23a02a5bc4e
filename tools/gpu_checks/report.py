"""What a section found, on disk while it runs: valid JSON at any moment, replaced as a whole."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Case = dict[str, Any]
QUIET = ("case", "ok", "where", "wall_s", "said")
OFTEN = 0.5  # seconds between two writings of a file


class Report:
    """A section's cases; a file that is written after each of them, though not more often than `OFTEN`.

    deadline: when the section's time is up, by the monotonic clock; earlier: what an earlier run of it found.
    """

    def __init__(self, path: Path, deadline: float, earlier: Sequence[Case] = ()) -> None:
        self.path, self.deadline, self.earlier = path, deadline, list(earlier)
        self.cases: list[Case] = []
        self._written = 0.0

    def run(self, name: str, action: Callable[[], Case]) -> bool:
        """Carry out a case; whatever it raises is written down."""
        return self.add(carry_out(name, action))

    def add(self, case: Case, show: bool = True) -> bool:
        """A case that was carried out elsewhere; show: whether to print it though it is well."""
        self.cases.append(case)
        if time.monotonic() - self._written > OFTEN or not case["ok"]:
            self.write()
        if show or not case["ok"]:
            print(line(case), flush=True)
        return bool(case["ok"])

    def write(self) -> None:
        """Replace the file."""
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.cases, indent=1))
        partial.replace(self.path)
        self._written = time.monotonic()


def carry_out(name: str, action: Callable[[], Case]) -> Case:
    """A case with its time; an exception becomes a failed one."""
    started = time.perf_counter()
    try:
        case = {"case": name, "ok": True, **action()}
    except Exception as error:
        case = {"case": name, "ok": False, "error": f"{type(error).__name__}: {error}"}
        case["where"] = traceback.format_exc(limit=-4)
    return {**case, "wall_s": round(time.perf_counter() - started, 3)}


def line(case: Case) -> str:
    """A case in one line."""
    shown = [f"{key}={value[:12] if key == 'sha256' else value}" for key, value in case.items() if key not in QUIET]
    return " ".join(["ok  " if case["ok"] else "FAIL", case["case"], *shown, f"({case['wall_s']:.1f} s)"])


def read(path: Path) -> Any:
    """What a JSON file holds; None where there is none."""
    return json.loads(path.read_text()) if path.exists() else None


def same_commit(before: dict[str, Any] | None, now: dict[str, Any]) -> bool:
    """Whether a record is of the very sources that are here."""
    commit = now["commit"]
    return before is not None and before.get("commit") == commit and re.fullmatch("[0-9a-f]{40}", commit) is not None
