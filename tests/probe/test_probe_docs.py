"""docs/profile.md says what the file holds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from peergrid.probe.experiment import Result
from peergrid.probe.profile import VERSION, Outcome, Profile
from peergrid.report.views import VIEWS

DOCS = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [Profile, Outcome, Result])
def test_every_entry_is_described(kind: type) -> None:
    for field in fields(kind):
        assert f"`{field.name}`" in DOCS, field.name


def test_every_quantity_is_described() -> None:
    for view in VIEWS:
        assert f"`{view.quantity}`" in DOCS, view.quantity


def test_the_version_is_the_documented_one() -> None:
    assert f"of this schema, now {VERSION}" in DOCS
