"""`peergrid report`: a profile as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.replace import guard
from peergrid.files import replacing
from peergrid.probe import profile as profiles
from peergrid.report import page


def report(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE.json", help="A profile that peergrid probe wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a profile as one self-contained HTML page."""
    guard(output, "page", "<!DOCTYPE html>")
    content = page(profiles.read(profile))
    with replacing(output) as partial:
        partial.write_text(content, encoding="utf-8")
    typer.echo(f"{output}: {len(content) // 1024} KiB")
