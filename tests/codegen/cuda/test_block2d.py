"""What a tile of a block holds in shared memory lies behind each other, and is all that is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from runtime_problems import between_profiles, one_sided, yee

from peergrid.codegen.cuda.fused.block import Block2D
from peergrid.stencil import Problem


@pytest.mark.parametrize("problem", [between_profiles(), one_sided(), yee()], ids=["two", "one", "of several stages"])
@pytest.mark.parametrize("steps", [1, 3])
def test_arrays_and_then_profiles(problem: Problem, steps: int) -> None:
    cells = Block2D(problem, steps, rows=24)
    spans = [(start, cells.values * (2 if name in cells.double else 1)) for name, start in cells.starts.items()]
    spans += [(profile.start, profile.length) for profile in cells.profiles.values()]
    ends = [start + length for start, length in spans]
    assert [start for start, _ in spans] == [0, *ends[:-1]]
    assert cells.shared_bytes == ends[-1] * problem.itemsize
    assert set(cells.profiles) == {name for name, field in problem.fields.items() if not field.full}


TEXT = """
from peergrid.bench.problems import radar
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel

print(PersistentKernel(pass_kernel(radar(256, 256, 100), 3)).program.source)
"""


def test_every_process_has_the_same_text() -> None:
    """Else kernels would be compiled anew by each: the order of a set of strings is another one in each."""
    texts = [
        subprocess.run(
            [sys.executable, "-c", TEXT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert "using Profiles = Numbers<cpml" in texts[0]
    assert texts[0] == texts[1]
