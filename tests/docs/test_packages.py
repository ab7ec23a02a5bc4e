"""Packages that say in which order their modules are read name every one of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "peergrid"
ORDERED = [path for path in sorted(SOURCE.rglob("__init__.py")) if "In the order of reading" in path.read_text()]


@pytest.mark.parametrize("path", ORDERED, ids=lambda path: str(path.parent.relative_to(SOURCE)))
def test_the_order_of_reading_has_every_module(path: Path) -> None:
    folder = path.parent
    modules = {one.stem for one in folder.glob("*.py")} - {"__init__"} | {
        one.parent.name for one in folder.glob("*/__init__.py")
    }
    assert set(re.findall(r"`(\w+)`", path.read_text().split('"""')[1])) == modules
