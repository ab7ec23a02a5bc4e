"""`peergrid source`: the kernels that are generated for a model."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from peergrid.cli.choose import ModelFile
from peergrid.cli.guard import check_description_memory
from peergrid.errors import UsageError
from peergrid.models import read
from peergrid.sources import Target, source_of


def source(
    model: ModelFile,
    target: Annotated[
        str,
        typer.Option("--target", metavar="NAME", help="cuda (CUDA C++) or cpu (LLVM's intermediate representation)."),
    ] = "cuda",
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="Steps per pass (GPUs; default: chosen).")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="NAME", help="Strategy of the exchange, as in 'run' (GPUs).")
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", metavar="N", help="Number of GPUs of the run.")] = None,
) -> None:
    """Print the source of a model's kernels; no GPU is needed."""
    if steps is not None and steps < 1:
        raise UsageError(f"'--steps' takes a whole number above 0, got {steps}.")
    if gpus is not None and gpus < 1:
        raise UsageError(f"'--gpus' takes a whole number above 0, got {gpus}.")
    described = read(model)
    check_description_memory(described)
    typer.echo(source_of(described.build().problem, cast(Target, target), steps, strategy, gpus))
