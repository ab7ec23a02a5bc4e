"""The documents of the installed version, listed and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from peergrid.cli import app
from peergrid.errors import UsageError

DOCS = Path(__file__).parents[2] / "docs"


def test_documents_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    app(["docs"], standalone_mode=False)
    listed = capsys.readouterr().out
    assert all(f"  {path.stem} " in listed for path in DOCS.glob("*.md"))
    app(["docs", "model-files"], standalone_mode=False)
    assert capsys.readouterr().out == (DOCS / "model-files.md").read_text()


@pytest.mark.parametrize(("name", "file"), [("docs/farm.md", "farm"), ("radar", "tutorials/radar")])
def test_a_page_has_more_names_than_one(name: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    app(["docs", name], standalone_mode=False)
    assert capsys.readouterr().out == (DOCS / f"{file}.md").read_text()


def test_a_page_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="got 'model-file'; did you mean 'model-files'"):
        app(["docs", "model-file"], standalone_mode=False)
