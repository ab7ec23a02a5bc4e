"""The options of a command: from the command line, the model file and the machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_type_hints

import typer

from peergrid.cli.guard import check_description_memory, check_model_memory
from peergrid.errors import UsageError
from peergrid.grid import Dtype, Index
from peergrid.io.rule import shown
from peergrid.jobs.requested import RequestedOptions
from peergrid.models import Model, RunSpec
from peergrid.models.survey import MOST, OpenModel
from peergrid.runtime.devices import parse_devices
from peergrid.runtime.ranks.launcher import own_devices, world
from peergrid.schedule import Options
from peergrid.schedule.build import ROUTES
from peergrid.schedule.exchange import Order
from peergrid.schedule.ops import Carrier, Route
from peergrid.schedule.strategies import STRATEGIES

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL.toml", help="The model file; see 'peergrid docs model-files'.")
]
DeviceSpec = Annotated[str, typer.Option("--devices", metavar="SPEC", help="auto, cpu:4, cuda, cuda:0,1 or cuda:0,0.")]
Traces = Annotated[
    int | None, typer.Option("-n", "--traces", metavar="N", help="Traces of a survey (gprMax input files).")
]
Precision = Annotated[
    str | None, typer.Option("--dtype", metavar="NAME", help="float32 or float64 (gprMax input files).")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]


@dataclass(frozen=True)
class CommandLineOptions:
    """The options of the command line that arrange a run, one for each field; 'auto' takes the value of the model file,
    and if that is 'auto' too, one chosen for the machine.
    """

    devices: DeviceSpec = "auto"
    strategy: Annotated[str, typer.Option("--strategy", metavar="NAME", help=f"{', '.join(STRATEGIES)}, or auto.")] = (
        "auto"
    )
    depth: Annotated[str, typer.Option("--depth", metavar="R", help="Steps between two halo exchanges, or auto.")] = (
        "auto"
    )
    order: Annotated[str, typer.Option("--order", metavar="NAME", help="left-right, pairwise, all, or auto.")] = "auto"
    route: Annotated[str, typer.Option("--route", metavar="NAME", help=f"{', '.join(ROUTES)}, or auto.")] = "auto"
    split: Annotated[
        str, typer.Option("--split", metavar="AxB", help="Parts along each axis, such as 2x2, or auto.")
    ] = "auto"

    def requested(self, model: Model, *, writing: bool = True, elsewhere: bool = False) -> RequestedOptions:
        """The options of the command line, or else of the model file; writing: the run writes results; elsewhere: the
        run is one on a machine that is not here.

        Raises UsageError for options that are not valid, DoesNotFit if the devices have too little memory under any.
        """
        given: RunSpec = model.run
        spec, comm = given.devices if self.devices == "auto" else self.devices, world()
        chosen = parse_devices(spec) if comm is None else own_devices(spec, comm)
        strategy, depth = _named(self.strategy, given.strategy), _named(self.depth, str(given.depth))
        found = RequestedOptions(
            chosen,
            strategy,
            None if depth is None else _whole("--depth", depth),
            cast(Order | None, _named(self.order, given.exchange)),
            cast(Route | Carrier | None, _named(self.route, given.route)),
            _split(self.split, len(model.shape)),
            comm,
        )
        # refuses unknown names
        Options(
            "overlap" if found.strategy is None else found.strategy,
            found.depth or 1,
            order="all" if found.order is None else found.order,
            route=found.route,
        )
        if elsewhere:
            check_description_memory(model)
        else:
            check_model_memory(model, chosen, writing)
        return found


def opened(model: Model, traces: int | None, dtype: str | None, drawn: bool = True) -> Model:
    """The model with options that gprMax input files leave open. Raises UsageError if one is not valid, or is set in
    the file.
    """
    given = {
        "-n": ("the table [survey]", traces is not None),
        "--dtype": ("grid.dtype", dtype is not None),
        "--no-pictures": ("the table [output]", not drawn),
    }
    if not isinstance(model, OpenModel):
        for option, (key, asked) in given.items():
            if asked:
                raise UsageError(f"'{option}' is for input files of gprMax, got a model file; set {key} there.")
        return model
    if not drawn:
        model = model.without_pictures()
    if dtype is not None:
        if dtype not in get_args(Dtype):
            raise UsageError(f"'--dtype' takes {' or '.join(get_args(Dtype))}, got '{shown(dtype)}'.")
        model = model.with_dtype(cast(Dtype, dtype))
    if traces is not None:
        if not 1 <= traces <= MOST:
            raise UsageError(f"'-n' takes a whole number from 1 to {MOST}, got {traces}.")
        model = model.with_traces(traces)
    return model


def folder_named(option: str, default: str) -> Callable[[str], Path]:
    """The parser of an option that names a folder. It raises UsageError for '', as from an unset variable: that is not
    the current folder.
    """

    def parse(name: str) -> Path:
        if not name:
            raise UsageError(f"'{option}' takes the name of a folder, got ''; leave it out for {default}.")
        return Path(name)

    return parse


def arranging(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `arguments` of a command by an option for each field of `CommandLineOptions`."""
    kinds = get_type_hints(CommandLineOptions, include_extras=True)
    names = [field.name for field in fields(CommandLineOptions)]
    options = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default="auto", annotation=kinds[n]) for n in names]
    own = get_type_hints(command, include_extras=True)

    @wraps(command)
    def expanded(**given: Any) -> None:
        arguments = CommandLineOptions(**{name: given.pop(name) for name in names})
        command(arguments=arguments, **given)

    written: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        named = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own[parameter.name])
        written += options if parameter.name == "arguments" else [named]
    expanded.__signature__ = inspect.Signature(written)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in written}
    return expanded


def _split(spec: str, axes: int) -> Index | None:
    """Parts along each axis; None for the default partition."""
    if spec == "auto":
        return None
    parts = tuple(_whole("--split", part) for part in spec.lower().replace("×", "x").split("x"))
    if len(parts) != axes:
        raise UsageError(f"'--split' takes {axes} numbers such as {'x'.join(['2'] * axes)}, got '{spec}'.")
    return parts


def _named(*values: str) -> str | None:
    return next((value for value in values if value != "auto"), None)


def _whole(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        got = text if len(text) <= 60 else f"{text[:57]}..."
        raise UsageError(f"'{option}' takes a whole number above 0 (or 'auto'), got '{got}'.")
    return int(text)
