"""Locked packages: a version and the hashes of its files, so that nothing else is installed under its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_package_has_hashes(name: str) -> None:
    found = re.split(r"^(?=[A-Za-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    bare = [one.split()[0] for one in found if not re.match(r"\S+==\S+ .*\\\n    --hash=sha256:[0-9a-f]{64}", one)]
    assert len(found) > 20
    assert not bare, "renew the files with 'make lock'"
