"""`peergrid report`: a profile as one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peergrid.errors import UsageError
from peergrid.probe import profile as profiles
from peergrid.report import page


def report(
    profile: Annotated[Path, typer.Argument(help="A profile that peergrid probe wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
) -> None:
    """Write a profile as one self-contained HTML page."""
    content = page(profiles.read(profile))
    if not output.parent.is_dir():
        raise UsageError(
            f"'{output}' should lie in an existing folder, but '{output.parent}' is none: create it first."
        )
    profiles.replace(output, content)
    typer.echo(f"{output}: {len(content) // 1024} KiB", err=True)
