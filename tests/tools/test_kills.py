"""A sample of what tools/kill_and_resume does: runs ended at random moments, resumed with other devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kills import power

from peergrid.files import replacing

TOOL = Path(__file__).parents[2] / "tools" / "kill_and_resume"


def test_runs_that_were_ended_leave_what_whole_ones_leave(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, str(TOOL), "--kills", "3", "--seed", "2", "--steps", "300", "-o", str(found),
         "--runs", "radar 2D", "heat 3D", "survey"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(found.read_text())
    assert record["same"] == record["runs"] > 2
    assert sum(record["ends"].values()) >= 3
    assert record["with checkpoints"] > 0


def test_without_power_only_what_was_waited_for_is_left(tmp_path: Path) -> None:
    folder, disk, fsync = tmp_path / "run", tmp_path / "disk", os.fsync
    folder.mkdir()
    (folder / "before").write_text("there")
    power.notes(folder, disk)
    try:
        with replacing(folder / "results") as partial:
            partial.write_text("whole")
        (folder / "results").write_text("changed")
        (folder / "letter").write_text("in memory alone")
        (folder / "before").unlink()
    finally:
        os.fsync = fsync
    power.fail(folder, disk)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"before": "there", "results": "whole"}
