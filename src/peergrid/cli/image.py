"""`peergrid image`: the same formula for every pixel of a grey image."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import AsJson


@dataclass(frozen=True)
class Changed:
    """The keys of `image --json`; the seconds of the formula alone, and of the copies, which are 0 on processors."""

    output: str
    shape: tuple[int, ...]
    dtype: str
    devices: str
    seconds: float
    to_devices: float
    from_devices: float
    sha256: str


def image(
    given: Annotated[Path, typer.Argument(metavar="IMAGE", help="A grey image of 8 or 16 bits: PNG or TIFF.")],
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="The new value of a pixel x, such as 'x / 3'.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The new image.")],
    devices: Annotated[
        str, typer.Option("--devices", metavar="SPEC", help="auto, cpu:4, cuda, cuda:0,1 or cuda:0,0.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Change every pixel of a grey image by a formula, on all devices."""
    from peergrid import images  # imports image libraries

    found = images.applied(formula, images.read(given), devices)
    images.write(output, found.pixels)
    changed = Changed(
        output=str(output),
        shape=found.pixels.shape,
        dtype=str(found.pixels.dtype),
        devices=str(found.devices),
        seconds=found.computing,
        to_devices=found.to_devices,
        from_devices=found.from_devices,
        sha256=sha256(found.pixels.tobytes()).hexdigest(),
    )
    typer.echo(json.dumps(asdict(changed), indent=2) if as_json else _text(changed))


def _text(changed: Changed) -> str:
    copies = changed.to_devices + changed.from_devices
    also = f", and {copies:.3g} s of copies" if copies else ""
    size = " × ".join(map(str, reversed(changed.shape)))
    return f"{changed.output}: {size} pixels of {changed.dtype} in {changed.seconds:.3g} s on {changed.devices}{also}"
