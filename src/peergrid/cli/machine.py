"""`peergrid machine`: describe the machine as text, as a picture, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from peergrid.errors import UsageError
from peergrid.machine import discover, encode, picture, text


def machine(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the topology picture to this file.")] = None,
) -> None:
    """Show processors, memory, GPUs, links, peers and settings, and say what is missing."""
    found = discover()
    if svg is not None:
        _write(svg, picture(found))
    if as_json:
        typer.echo(json.dumps(encode(found), ensure_ascii=False, indent=2))
    else:
        typer.echo(text(found), nl=False)


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"The picture should go to '{path}', but {error.strerror or error}: give a writable file."
        ) from error
