"""The recorded reports are what the recorded profiles give today."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from peergrid.probe import show
from peergrid.probe.profile import read
from peergrid.report import page

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PROFILES = sorted(RESULTS.glob("profile-*.json"))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_the_report_beside_a_profile_is_made_from_it(path: Path) -> None:
    report = path.with_name(path.name.replace("profile-", "report-")).with_suffix(".html")
    same = report.read_text(encoding="utf-8") == page(read(path))
    assert same, f"make it again: peergrid report {path.name} -o {report.name}"


def test_the_full_profile_lacks_nothing_without_a_reason() -> None:
    """Every experiment has numbers, or says why this hardware gives none."""
    full = [profile for profile in map(read, PROFILES) if not profile.quick]
    assert full
    for profile in full:
        for outcome in profile.probes:
            assert outcome.status in ("done", "impossible"), outcome.name
            assert outcome.results or outcome.reason, outcome.name


def test_what_is_known_to_be_wrong_is_said_at_the_top() -> None:
    profile = replace(read(PROFILES[0]), notes=("Barriers are <wrong>.",))
    top = page(profile).split("<nav>")[0]
    assert '<p class="slow">Added later: Barriers are &lt;wrong&gt;.</p>' in top
    assert show.profile(profile).splitlines()[1] == "Note: Barriers are <wrong>."
    for name in ("profile-h200-x4", "profile-h200-x8-quick"):
        assert "Added later" in page(read(RESULTS / f"{name}.json"))
