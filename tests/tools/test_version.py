"""The version follows the tag of a commit: in clones with tags and without, in archives and in source packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import version as tool
from version import NEXT, ROOT, version

import peergrid

GIT = (
    "git",
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "protocol.file.allow=always",
)


def git(where: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=where, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit and no tag."""
    path = tmp_path / "checkout"
    path.mkdir()
    for name in (".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, path)
    git(path, "init", "-q")
    git(path, "add", ".")
    git(path, "commit", "-qm", "one")
    return path


def archive(checkout: Path) -> Path:
    """What `git archive` makes of the commit, unpacked beside it."""
    path = checkout.with_name("archive")
    path.mkdir()
    git(checkout, "archive", "-o", "../it.tar", "HEAD")
    subprocess.run(["tar", "-xf", "../it.tar"], cwd=path, check=True)
    return path


def test_without_tags_the_next_version_is_on_its_way(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=8", "HEAD").strip()
    assert version(checkout) == f"{NEXT}.dev0+g{commit}"
    assert version(archive(checkout)) == f"{NEXT}.dev0+g{commit}"


def test_a_tag_is_the_version(checkout: Path) -> None:
    git(checkout, "tag", "v1.4.2")
    assert version(checkout) == "1.4.2"
    assert version(archive(checkout)) == "1.4.2"
    (checkout / ".gitattributes").write_text("other\n")
    assert version(checkout) == "1.4.2+dirty"


def test_after_a_tag_the_version_after_it_is_on_its_way(checkout: Path) -> None:
    git(checkout, "tag", "v1.4.2")
    git(checkout, "tag", "not-a-version")
    git(checkout, "commit", "-qm", "two", "--allow-empty")
    git(checkout, "tag", "nor-this")
    commit = git(checkout, "rev-parse", "--short=8", "HEAD").strip()
    assert version(checkout) == f"1.4.3.dev1+g{commit}"
    assert re.fullmatch(r"1\.4\.3\.dev1\+g[0-9a-f]+", version(archive(checkout)))
    assert tool.of("v2.0.0rc1-3-gabcdef12") == "2.0.0.dev3+gabcdef12"


def test_a_source_package_keeps_its_version(tmp_path: Path) -> None:
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: peergrid\nVersion: 3.1.4\n")
    assert version(tmp_path) == "3.1.4"


def test_sources_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert version(tmp_path) == f"{NEXT}.dev0"
    shutil.copy(ROOT / ".git_archival.txt", tmp_path)  # as it lies in a checkout
    assert version(tmp_path) == f"{NEXT}.dev0"


def test_the_package_says_the_version_that_it_was_installed_with() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?(\+[a-z0-9.]+)?", peergrid.__version__)
