"""A stencil takes little along: packages for files, pictures, commands, GPUs may be absent, and so may `resource`."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys

import psutil  # which takes `resource` along where there is one

ABSENT = {"matplotlib", "h5py", "PIL", "rich", "typer", "cuda", "mpi4py", "numba", "scipy", "resource"}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
sys.modules.pop("resource", None)
import peergrid

assert {"run_model", "write_state"} <= set(dir(peergrid)), "they need h5py, but only when they are used"

@peergrid.stencil
def fade(u, k):
    u.next[0, 0] = k * u[0, 0]

result = peergrid.run(fade(peergrid.Grid((8, 8)).field("u", 1.0), k=0.5), 3, devices="cpu:2", norm="u")
assert (result.fields["u"] == 0.125).all()
"""


def test_a_stencil_needs_three_packages() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
