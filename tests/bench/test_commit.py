"""Records name the commit of the sources, in a checkout and in an archive made of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from peergrid.bench.commit import ROOT, commit

COMMIT = ["-c", "user.name=one", "-c", "user.email=one@example.org", "commit", "-q", "-m", "first"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "one.py").write_text("1\n")
    for name in (".git_archival.txt", ".gitattributes"):
        (folder / name).write_text((ROOT / name).read_text())
    for words in (["init", "-q"], ["add", "."], COMMIT):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def test_a_checkout_an_archive_and_bare_files(checkout: Path, tmp_path: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True).stdout
    assert commit(checkout) == head.strip()
    (checkout / "src" / "one.py").write_text("2\n")
    assert commit(checkout) == f"{head.strip()}-dirty"
    assert commit(checkout / "src") == "", "a package that was installed somewhere within is not of this commit"
    archive = tmp_path / "archive"
    archive.mkdir()
    subprocess.run(f"git archive HEAD | tar -x -C {archive}", cwd=checkout, shell=True, check=True)
    assert commit(archive) == head.strip()
    (archive / ".git_archival.txt").unlink()
    assert commit(archive) == ""
