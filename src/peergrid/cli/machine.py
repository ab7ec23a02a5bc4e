"""`peergrid machine`: describe the machine as text, as a picture, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.replace import guard
from peergrid.machine import discover, encode, picture, text
from peergrid.probe.profile import replace


def machine(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the topology picture to this file.")] = None,
) -> None:
    """Show processors, memory, GPUs, links, peers and settings, and say what is missing."""
    if svg is not None:
        guard(svg, "picture", "<svg")
    found = discover()
    if svg is not None:
        replace(svg, picture(found))
    if as_json:
        typer.echo(json.dumps(encode(found), ensure_ascii=False, indent=2))
    else:
        typer.echo(text(found), nl=False)
