"""A sample of what tools/kill_and_resume does: runs ended at random moments, resumed with other devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "kill_and_resume"


def test_runs_that_were_ended_leave_what_whole_ones_leave(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, str(TOOL), "--kills", "5", "--seed", "2", "--steps", "300", "-o", str(found)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(found.read_text())
    assert record["same"] == record["runs"] > 2
    assert sum(record["ends"].values()) >= 5
    assert record["with checkpoints"] > 0
