"""`peergrid machine`: describe the machine as text, a picture or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.replace import guard
from peergrid.files import replacing
from peergrid.machine import discover, encode, picture, text
from peergrid.runtime.ranks.launcher import world
from peergrid.runtime.ranks.survey import survey
from peergrid.runtime.ranks.survey import text as text_of_ranks


def machine(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write the topology picture to this file.")
    ] = None,
) -> None:
    """Show processors, memory, GPUs, links, peers and settings, and say what is missing; with a launcher, ranks too."""
    comm = world()
    ranks = None if comm is None else survey(comm)
    if comm is not None and comm.rank:
        return
    if svg is not None:
        guard(svg, "picture", "<svg")
    found = discover()
    if svg is not None:
        with replacing(svg) as partial:
            partial.write_text(picture(found), encoding="utf-8")
    if as_json:
        processes = {} if ranks is None else {"ranks": ranks.encoded()}
        typer.echo(json.dumps({**encode(found), **processes}, ensure_ascii=False, indent=2))
    else:
        typer.echo(text(found) + ("" if ranks is None else text_of_ranks(ranks)), nl=False)
        if svg is not None:
            typer.echo(f"\nwrote {svg}")
