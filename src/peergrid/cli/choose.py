"""What the command line, the model file and the machine together choose: devices, strategy, depth, split."""

from __future__ import annotations

from dataclasses import replace
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
from peergrid.simulate import default_options

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


def choose_options(devices: Devices, strategy: str, depth: str, order: str, wished: RunSpec) -> Options:
    """The options of the command line, or else of the model file, or else those that suit the devices."""
    options = default_options(devices)
    named = _first(strategy, wished.strategy)
    if named != "auto":
        options = replace(options, strategy=cast(StrategyName, named))  # Options refuses an unknown one
    layers = _first(depth, str(wished.depth))
    if layers != "auto":
        options = replace(options, depth=_whole("--depth", layers), block=None)
    exchange = _first(order, wished.exchange)
    if exchange != "auto":
        options = replace(options, order=cast(Order, exchange))
    return options


def choose_split(spec: str, axes: int) -> Index | None:
    """Parts along each axis; None leaves the choice to the partition."""
    if spec == "auto":
        return None
    parts = tuple(_whole("--split", part) for part in spec.lower().replace("×", "x").split("x"))
    if len(parts) != axes:
        raise UsageError(f"'--split' takes {axes} numbers such as {'x'.join(['2'] * axes)}, got '{spec}'.")
    return parts


def _first(*values: str) -> str:
    return next((value for value in values if value != "auto"), "auto")


def _whole(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"'{option}' takes a whole number above 0 (or 'auto'), got '{text}'.")
    return int(text)
