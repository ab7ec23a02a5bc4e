"""`peergrid convert`: an input file of another program as a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import Precision, Traces, opened
from peergrid.cli.notes import print_notes
from peergrid.cli.replace import guard
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.models import ForeignModel, read

START = "# Written by 'peergrid convert' from"


def convert(
    given: Annotated[Path, typer.Argument(metavar="MODEL.in", help="A gprMax input file.")],
    output: Annotated[Path, typer.Argument(metavar="MODEL.toml", help="The model file to write.")],
    traces: Traces = None,
    dtype: Precision = None,
) -> None:
    """Convert a gprMax input file to a model file; both give the same results, bit for bit."""
    if given.suffix.lower() == ".toml" or output.suffix.lower() != ".toml":
        raise UsageError(
            f"An input file (.in) and a new .toml file are expected, got '{given.name}' and '{output.name}'."
        )
    guard(output, "model file of 'peergrid convert'", START)
    model = opened(read(given), traces, dtype)
    if not isinstance(model, ForeignModel):
        raise UsageError(f"'{given.name}' is expected to be an input file of gprMax, got a file of another kind.")
    text, notes = model.written(output.parent)
    with replacing(output) as partial:
        partial.write_text(f"{START} {given.name}\n\n{text}", encoding="utf-8")
    print_notes(notes)
    typer.echo(f"wrote {output}")
