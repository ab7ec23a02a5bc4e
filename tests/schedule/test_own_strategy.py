"""A strategy of one's own: known by its decorator, proved before it runs, refused where it is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from peergrid.errors import UsageError
from peergrid.schedule import strategy

TEXT = (Path(__file__).parents[2] / "docs" / "strategies.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
BARRIER = "        yield DeviceBarrier(queues, (0,))\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: strategies are known as long as it lives."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_example_of_the_documentation_runs() -> None:
    found = run(f"{EXAMPLE}\nprint(simulation.step)")
    assert (found.returncode, found.stdout) == (0, "10\n"), found.stderr


def test_a_wrong_one_does_not_run() -> None:
    """Without its second barrier, and without the assertion that it is proved."""
    first, middle, last = EXAMPLE.split(BARRIER)
    wrong = f"{first}{BARRIER}{middle}{last}".replace("assert proof.holds, proof.faults", "")
    found = run(wrong)
    assert found.returncode == 1
    assert "CheckFailed: The schedule of strategy 'barriers' is wrong, so nothing ran. Race on 'u' slot" in found.stderr
    assert "To mend it, record an event in " in found.stderr


def test_names_that_are_taken_and_routes_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="A new name of a strategy is expected, got 'peer'"):
        strategy("peer")
    with pytest.raises(UsageError, match="A route is one of copy, store, host, got 'post'"):
        strategy("by post", "post")  # type: ignore[arg-type]
