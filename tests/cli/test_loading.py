"""Ctrl-C while the command line is being loaded."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "peergrid.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from peergrid.__main__ import main
main()
"""


def test_it_ends_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
