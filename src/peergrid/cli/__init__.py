"""The command line: one function per command, errors as one sentence and an exit code."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from peergrid import __version__
from peergrid.cli.bench import bench
from peergrid.cli.cache import cache
from peergrid.cli.convert import convert
from peergrid.cli.docs import docs
from peergrid.cli.farm import FarmCommand, farm
from peergrid.cli.image import image
from peergrid.cli.machine import machine
from peergrid.cli.plan import plan
from peergrid.cli.probe import probe
from peergrid.cli.report import report
from peergrid.cli.run import run
from peergrid.cli.source import source
from peergrid.cli.streams import discard, standard_streams
from peergrid.cli.trace import trace
from peergrid.cli.verify import verify
from peergrid.errors import DoesNotFit, PeergridError, UsageError
from peergrid.runtime.ranks.launcher import INTERRUPTED, end_all, let_first_report, require_alone

OUT_OF_MEMORY = (
    "This machine, or the limit set for this process, has too little memory: use fewer devices, fewer steps or a "
    "coarser grid."
)

NO_NUMBER = re.compile(r"Input should be a valid integer.*")
"""Typer's words for a text that is no whole number."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"peergrid {__version__}")
        raise typer.Exit


@app.callback()
def peergrid(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Stencil computations, such as waves and radar, on all processor cores or NVIDIA GPUs of a machine."""
    if context.invoked_subcommand not in (None, "run", "machine", "probe"):
        require_alone(context.invoked_subcommand)


app.command()(run)
app.command()(trace)
app.command()(verify)
app.command()(plan)
app.command()(source)
app.command()(machine)
app.command()(probe)
app.command()(bench)
app.command()(report)
app.command()(image)
app.command()(cache)
app.command()(convert)
app.command()(docs)
app.command(cls=FarmCommand)(farm)


def main() -> None:
    """Run the command line; an error becomes one line on standard error and its exit code."""
    with standard_streams():
        _run_command()


def _run_command() -> None:
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except typer.Abort:
        end_all(INTERRUPTED)
        sys.exit(INTERRUPTED)
    except TyperException as error:
        _refuse(_misused(error), error.exit_code)
    except PeergridError as error:
        _refuse(str(error), error.exit_code)
    except MemoryError:
        _refuse(OUT_OF_MEMORY, DoesNotFit.exit_code)
    except OSError as error:  # on standard output; errors of files that a command writes are UsageErrors
        discard(sys.stdout)
        _refuse(f"The output could not be written: {error.strerror or error}.", UsageError.exit_code)


def _misused(error: TyperException) -> str:
    """The sentence about a wrong command line; empty if the help was printed because there were no arguments."""
    message = NO_NUMBER.sub("a whole number is expected", error.format_message().rstrip("."))
    context = getattr(error, "ctx", None)
    command = f" {context.info_name}" if context is not None and context.parent is not None else ""
    return f"{message}; see 'peergrid{command} --help'." if message else ""


def _refuse(sentence: str, code: int) -> None:
    if sentence:
        let_first_report()
        print(sentence, file=sys.stderr)
    end_all(code)
    sys.exit(code)
