"""The command line: one function per command, errors as one sentence and an exit code."""

from __future__ import annotations

import sys

import typer

from peergrid.cli.machine import machine
from peergrid.cli.plan import plan
from peergrid.cli.probe import probe
from peergrid.cli.report import report
from peergrid.cli.run import run
from peergrid.errors import PeergridError

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command()(run)
app.command()(plan)
app.command()(machine)
app.command()(probe)
app.command()(report)


def main() -> None:
    """Run the command line; an error of ours becomes one line on standard error and its exit code."""
    try:
        app()
    except PeergridError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
