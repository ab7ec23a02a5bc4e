"""What the command line, the model file and the machine together choose: devices, strategy, depth, split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, cast

import typer

from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.models.fdtd.model import RunSpec
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.schedule import Options
from peergrid.schedule.exchange import Order
from peergrid.schedule.strategies import StrategyName
from peergrid.simulate import suited
from peergrid.stencil import Problem

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.toml", help="The model file; see docs/model-files.md.")]
DeviceSpec = Annotated[str, typer.Option("--devices", metavar="SPEC", help="auto, cpu:4, cuda, cuda:0,1 or cuda:0,0.")]
StrategySpec = Annotated[str, typer.Option("--strategy", metavar="NAME", help="How halos travel, or auto.")]
DepthSpec = Annotated[str, typer.Option("--depth", metavar="R", help="Steps between two exchanges, or auto.")]
OrderSpec = Annotated[str, typer.Option("--order", metavar="NAME", help="left-right, pairwise, all, or auto.")]
SplitSpec = Annotated[str, typer.Option("--split", metavar="AxB", help="Parts along each axis, such as 2x2, or auto.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]


def choose_devices(spec: str, wished: RunSpec) -> Devices:
    """The devices of the command line, or else of the model file."""
    return parse_devices(wished.devices if spec == "auto" else spec)


@dataclass(frozen=True)
class Wish:
    """What the command line and the model file ask for; None leaves the choice to the devices and the problem."""

    strategy: StrategyName | None
    depth: int | None
    order: Order | None

    def options(self, devices: Devices, problem: Problem, steps: int, split: Index | None) -> Options:
        """The wish, completed by what suits a run of so many steps on the devices."""
        found = suited(devices, problem, steps, strategy=self.strategy, depth=self.depth, split=split)
        return replace(found, order=self.order or found.order)


def choose_options(strategy: str, depth: str, order: str, wished: RunSpec) -> Wish:
    """The wish of the command line, or else of the model file. Raises UsageError where it makes no sense."""
    named, layers = _named(strategy, wished.strategy), _named(depth, str(wished.depth))
    found = Wish(
        cast(StrategyName | None, named),
        None if layers is None else _whole("--depth", layers),
        cast(Order | None, _named(order, wished.exchange)),
    )
    Options(found.strategy or "overlap", found.depth or 1, order=found.order or "all")  # refuses unknown names
    return found


def choose_split(spec: str, axes: int) -> Index | None:
    """Parts along each axis; None leaves the choice to the partition."""
    if spec == "auto":
        return None
    parts = tuple(_whole("--split", part) for part in spec.lower().replace("×", "x").split("x"))
    if len(parts) != axes:
        raise UsageError(f"'--split' takes {axes} numbers such as {'x'.join(['2'] * axes)}, got '{spec}'.")
    return parts


def _named(*values: str) -> str | None:
    return next((value for value in values if value != "auto"), None)


def _whole(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"'{option}' takes a whole number above 0 (or 'auto'), got '{text}'.")
    return int(text)
