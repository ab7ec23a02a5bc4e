"""docs/profile.md says what the file holds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import VERSION, Outcome, Profile
from peergrid.probe.registry import PROBES
from peergrid.report.views import VIEWS

DOCS = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [Profile, Outcome, Measurement])
def test_every_entry_is_described(kind: type) -> None:
    for field in fields(kind):
        assert f"`{field.name}`" in DOCS, field.name


def test_every_quantity_is_described() -> None:
    for view in VIEWS:
        assert f"`{view.quantity}`" in DOCS, view.quantity


def test_every_experiment_is_described() -> None:
    for probe in PROBES:
        row = f"| `{probe.name}` | {probe.group} | {probe.title} | {probe.unit or '–'} |"
        assert row in DOCS, row


def test_the_version_is_the_documented_one() -> None:
    assert f"of this schema, now {VERSION}" in DOCS
