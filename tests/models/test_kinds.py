"""Kinds of models from packages: the one of docs/models.md, from the command line and from Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.models import parse
from peergrid.models.registry import kinds, reader

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FILE, ENTRY = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with the package of docs/models.md as installers lay it out."""
    folder = tmp_path / "packages"
    (folder / "my_package").mkdir(parents=True)
    (folder / "my_package" / "heat.py").write_text(CODE)
    _enter(folder, "my_package", ENTRY.splitlines()[1].replace('"', ""))
    (tmp_path / "plate.toml").write_text(FILE)
    return folder


def _enter(folder: Path, name: str, entry: str) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[peergrid.models]\n{entry}\n")


def _peergrid(packages: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "peergrid", *words],
        cwd=packages.parent,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_kind_of_a_package_runs_as_any_other(packages: Path) -> None:
    words = ("plate.toml", "--devices", "cpu:2", "--json", "-o", "out", "--checkpoint", "40steps")
    done = _peergrid(packages, "run", *words)
    assert done.returncode == 0, done.stderr
    found, folder = json.loads(done.stdout), packages.parent
    assert found["shape"] == [40, 30]
    assert found["steps"] == 25
    assert found["outputs"] == ["out/middle.csv", "out/snapshots.h5"]
    times, middle = np.loadtxt(folder / "out/middle.csv").T
    assert times[-1] == pytest.approx(5.0)
    assert middle[-1] > middle[5] > 0
    with h5py.File(folder / "out/snapshots.h5") as file:
        assert file["T"].shape == (2, 40, 30)
        assert file.attrs["Title"] == "A hot square"
        assert file["T"][-1].sum() == pytest.approx(file["T"][0].sum(), rel=1e-3)


def test_mistakes_in_its_files_have_their_sentences(packages: Path) -> None:
    misspelt = FILE.replace("size", "sise")
    (packages.parent / "plate.toml").write_text(misspelt)
    done = _peergrid(packages, "plan", "plate.toml")
    assert done.returncode == 2
    assert done.stderr == "plate.toml: plate.sise is no known key; did you mean 'size'?\n"
    (packages.parent / "plate.toml").write_text(FILE.replace("heat2d", "heat2f"))
    done = _peergrid(packages, "plan", "plate.toml")
    assert done.returncode == 2
    assert re.fullmatch(
        r"plate.toml: model.kind is expected to be 'fdtd2d'.* or 'heat2d', got 'heat2f'; did you mean 'heat2d'\?\n",
        done.stderr,
    )


def test_a_package_that_cannot_be_imported(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(packages)
    _enter(packages, "broken", "lost = nowhere.at_all:read")
    with pytest.raises(UsageError, match=r"^model.kind 'lost' is expected to be found at nowhere.at_all:read, got: "):
        reader("lost")


def test_two_packages_with_one_kind(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(packages)
    _enter(packages, "second", "heat2d = other:read")
    with pytest.raises(UsageError, match=r"^One kind .* called 'heat2d', and two are installed: "):
        kinds()


def test_no_kind_and_one_that_is_no_name() -> None:
    grid = "[grid]\nsize = [1.0, 0.5]\nspacing = 0.01\nsteps = 10\n"
    assert parse(grid).shape == (100, 50)
    with pytest.raises(UsageError, match=r"^model.kind is expected to be text that is not empty, got 5; correct it.$"):
        parse(f"{grid}[model]\nkind = 5\n")


def test_a_kind_outside_its_table() -> None:
    said = r"^kind is expected in table \[model\], got 'acoustic2d' above all tables; write \[model\] before it\.$"
    with pytest.raises(UsageError, match=said):
        parse('kind = "acoustic2d"\n[grid]\n')
