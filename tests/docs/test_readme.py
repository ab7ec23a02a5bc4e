"""The README says what the files say, and its examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)


def test_figures_and_examples_are_those_of_the_files() -> None:
    done = run(ROOT / "tools/readme_figures", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr


MODEL = """
[grid]
size = [0.6, 0.4]
spacing = 0.01
steps = 80
[[source]]
kind = "line"
position = [0.2, 0.2]
waveform = { kind = "ricker", frequency = 1e9 }
[[receiver]]
position = [0.25, 0.2]
"""


def test_a_bscan_has_a_column_for_each_place(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(MODEL)
    done = run(ROOT / "examples/bscan.py", "model.toml", "--traces", "2", "--step", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "bscan.h5") as file:
        section = file["rxs/rx1/Ez"][:]
    alone = run("-m", "peergrid", "run", "model.toml", "-o", "one", cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    with h5py.File(tmp_path / "one/results.h5") as file:
        assert np.array_equal(section[:, 0], file["rxs/rx1/Ez"][:])
    early = slice(0, 30)  # before the echoes of the absorbers, which are not as far away
    np.testing.assert_allclose(section[early, 1], section[early, 0], rtol=1e-5, atol=1e-3)


def test_a_bscan_moves_receiver_arrays_and_leaves_plane_waves(tmp_path: Path) -> None:
    wave = 'kind = "plane_wave"\ndirection = "-y"\nposition = 0.25'
    array = "[[receiver_array]]\nfirst = [0.2, 0.2]\nlast = [0.4, 0.2]\ncount = 3"
    model = MODEL.replace('kind = "line"\nposition = [0.2, 0.2]', wave).replace(
        "[[receiver]]\nposition = [0.25, 0.2]", array
    )
    (tmp_path / "model.toml").write_text(model.replace("[grid]", '[grid]\nperiodic = ["x"]'))
    done = run(ROOT / "examples/bscan.py", "model.toml", "--traces", "2", "--step", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "bscan.h5") as file:
        assert [file[f"rxs/rx{n}"].attrs["Name"] for n in (1, 2, 3)] == ["array1-1", "array1-2", "array1-3"]
        assert file.attrs["nrx"] == 3
        here, there = file["rxs/rx2/Ez"][:], file["rxs/rx1/Ez"][:]
    assert np.array_equal(here[:, 0], there[:, 1])
    assert here.any()


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.name != "bscan.py"], ids=lambda path: path.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    done = run(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if example.name == "life.py":
        assert done.stdout == "the glider arrived\n"


@pytest.mark.parametrize("document", ["README.md", "docs/stencils.md", "docs/waves.md"])
def test_python_blocks_run(document: str, tmp_path: Path) -> None:
    script = tmp_path / "blocks.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)))
    done = run(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_heat_takes_at_most_fifteen_lines() -> None:
    lines = (ROOT / "examples/heat.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(('"""', "#"))]
    assert len(code) <= 15


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_commands_of_the_readme_exist() -> None:
    commands = re.findall(r"^    peergrid (.+?)(?:\s+#.*)?$", README, re.MULTILINE)
    assert commands
    for command in commands:
        with pytest.raises(SystemExit) as done:
            app([shlex.split(command)[0], "--help"])
        assert done.value.code == 0, command


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_documents_name_no_path_of_one_machine(document: str) -> None:
    text = (ROOT / document).read_text()
    assert not re.search(r"/(home|root|tmp)/", text)
