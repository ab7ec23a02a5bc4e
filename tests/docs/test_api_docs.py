"""The reference has every public name, and each of them says what it is."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = "".join((DOCS / page).read_text() for page in ("api.md", "api-kinds.md"))
PUBLIC = {
    f"{package}.{name}"
    for package in ("peergrid", *(f"peergrid.{room}" for room in (
        "models.wave", "inverse", "images", "sparse", "spins", "gprmax",
    )))
    for name in importlib.import_module(package).__all__
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_in_the_reference_and_described(name: str) -> None:
    package, _, short = name.rpartition(".")
    assert re.search(rf"^::: peergrid\.(\w+\.)*{short}$", REFERENCE, re.MULTILINE)
    assert (getattr(importlib.import_module(package), short).__doc__ or "").strip()
