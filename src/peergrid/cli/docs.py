"""`peergrid docs`: the documents of the version that is installed."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from peergrid.errors import UsageError

PACKAGE = Path(__file__).resolve().parents[1]
PLACES = (PACKAGE / "docs", PACKAGE.parents[1] / "docs")  # in an installed package, in a clone


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="The document to print, such as model-files.")
    ] = None,
) -> None:
    """List the documents of this version, or print one."""
    folder = next((place for place in PLACES if place.is_dir()), None)
    if folder is None:
        raise UsageError("The documents are expected in the installed package and are missing; install peergrid again.")
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    if page is None:
        typer.echo(f"in {folder}")
        for name in (name for name in pages if "/" not in name or name.startswith("tutorials/")):
            typer.echo(f"  {name:<22}{pages[name].read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")
        return
    found = pages.get(page.removesuffix(".md").removeprefix("docs/")) or pages.get(f"tutorials/{page}")
    if found is not None:
        typer.echo(found.read_text(encoding="utf-8"), nl=False)
    else:
        near = get_close_matches(page, pages, 1)
        hint = f"did you mean '{near[0]}'?" if near else "see 'peergrid docs'."
        raise UsageError(f"The name of a document is expected, got '{page}'; {hint}")
