"""`peergrid cache`: the folder of compiled code, shown or cleared."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from peergrid.codegen.cache import MOST_BYTES, clear, default_cache, usage
from peergrid.machine.units import size


def cache(
    wipe: Annotated[
        bool, typer.Option("--clear", help="Remove the compiled code; the next run compiles again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Show the compiled code that is kept between runs, or remove it."""
    folder = default_cache()
    if wipe:
        clear(folder)
    found = usage(folder)
    if as_json:
        typer.echo(json.dumps(asdict(found) | {"folder": str(folder), "most_bytes": MOST_BYTES}, indent=2))
        return
    typer.echo(f"{folder}: {'cleared' if wipe else 'compiled code'}, at most {size(MOST_BYTES)} of each kind")
    typer.echo(f"  processors  {size(found.processor_bytes)} in {found.processor_modules} modules")
    typer.echo(f"  GPUs        {size(found.gpu_bytes)} in {found.gpu_files} files")
