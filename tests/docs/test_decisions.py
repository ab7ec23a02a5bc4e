"""Decision records are short, dated, and listed in their index; measurements lead to the decision that they served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
SECTIONS = ["Context", "Decision", "Alternatives", "Consequences"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_a_record_has_a_title_a_date_a_status_and_four_parts(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert len(lines) <= 45
    assert re.fullmatch(rf"# {record.name[:3]}: .+", lines[0])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, (in force|replaced by \d{3})\.", lines[2])
    found = re.findall(r"^(?:## (\w+)|\*\*(\w+)\.\*\*)", "\n".join(lines), re.MULTILINE)
    assert [one or other for one, other in found] == SECTIONS


def test_the_index_lists_every_record_under_its_title() -> None:
    rows = re.findall(
        r"^\| \[(\d+)\]\((.+?)\) \| (.+?) \| (.+?) \| (.+?) \|$",
        (DOCS / "decisions/README.md").read_text(),
        re.MULTILINE,
    )
    assert [row[1] for row in rows] == [record.name for record in RECORDS]
    for (number, _, title, date, status), record in zip(rows, RECORDS, strict=True):
        lines = record.read_text().splitlines()
        assert (lines[0], lines[2]) == (f"# {number}: {title}", f"{date}, {status}.")


@pytest.mark.parametrize("folder", ["decisions", "measurements", "."])
def test_links_lead_somewhere(folder: str) -> None:
    for document in (DOCS / folder).glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document.name, target)
