"""The README says what the files say, and its examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    done = run(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if example.name == "life.py":
        assert done.stdout == "the glider arrived\n"
    if example.name == "gpr3d.py":
        assert done.stdout == "the echo comes after 2.82 ns, 6 V/m strong\n"
    if example.name == "rtm.py":
        assert done.stdout == "a layer at 415 m\n"  # between the nodes at 410 and 420


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/stencils.md",
        "docs/waves.md",
        "docs/radar3d.md",
        "docs/ownership.md",
        "docs/tutorials/devito.md",
        "docs/tutorials/physics.md",
    ],
)
def test_python_blocks_run(document: str, tmp_path: Path) -> None:
    script = tmp_path / "blocks.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)))
    done = run(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_heat_takes_at_most_fifteen_lines() -> None:
    lines = (ROOT / "examples/heat.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(('"""', "#"))]
    assert len(code) <= 15


def test_the_gallery_shows_the_examples_as_they_are() -> None:
    done = run(ROOT / "tools/gallery", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", (ROOT / "docs/gallery.md").read_text()):
        assert (ROOT / "docs" / picture).exists(), picture


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
