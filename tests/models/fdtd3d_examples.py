"""Small domains in vacuum and other media, and what a run of them records."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

import peergrid
from peergrid import Options
from peergrid.grid import Array, Index
from peergrid.models.fdtd3d import (
    PEC,
    SIDES,
    VACUUM,
    Absorber,
    BuiltDomain,
    Domain,
    Medium,
    Slab,
)
from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT

SPACING = 0.002


def stable(spacing: tuple[float, ...]) -> float:
    """The largest time step in vacuum, seconds."""
    return (1 - 1e-12) / (SPEED_OF_LIGHT * sqrt(sum(1 / d**2 for d in spacing)))


def vacuum(shape: Index, steps: int, *, media: tuple[Medium, ...] = (VACUUM, PEC), **given: Any) -> Domain:
    """A domain of the first medium with cubic cells, in double precision unless something else is given."""
    plane = given.get("mode", "3D") != "3D"
    nodes = tuple(n + 1 for n in shape[: 2 if plane else 3])
    ids = np.zeros((6, *nodes, *((1,) if plane else ())), np.uint8)
    spacing = (SPACING,) * 3
    values = {"ids": ids, "dt": stable(spacing[: len(nodes)]), "dtype": "float64", "spacing": spacing} | given
    return Domain(shape=shape, steps=steps, media=media, **values)


def absorbing(cells: int, sides: tuple[str, ...] = SIDES) -> Absorber:
    """The usual absorber on some sides."""
    return Absorber(tuple((side, Slab(cells)) for side in sides))  # type: ignore[misc]


def traces(built: BuiltDomain, devices: str = "cpu:2", options: Options | None = None) -> dict[tuple[str, str], Array]:
    """What each receiver records, SI units, after each step."""
    found = peergrid.run(
        built.problem, steps=built.domain.steps, devices=devices, options=options or Options("async", depth=1)
    )
    return {
        (recorder.name, output): sum((factor * found.traces[name] for factor, name in parts), start=np.zeros(1))
        for recorder in built.recorders
        for output, parts in recorder.outputs.items()
    }
