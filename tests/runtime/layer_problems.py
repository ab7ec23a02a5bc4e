"""3D problems with absorbers on all sides: of radar, and in the stage of the usual update."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import numpy as np

from peergrid.grid import Box, Field, Grid, Index
from peergrid.models.fdtd3d import SIDES, VACUUM, Absorber, Domain, Slab, build
from peergrid.stencil import Problem, Stage, stencil


def absorbing_vacuum(shape: Index) -> Problem:
    """Radar in empty space, with absorbers of ten cells on all sides."""
    ids = np.broadcast_to(np.uint8(0), (6, *(cells + 1 for cells in shape)))
    absorber = Absorber(tuple((side, Slab(10)) for side in SIDES))
    return build(Domain(shape, (0.002,) * 3, 3e-12, 9, (VACUUM,), ids, absorber=absorber)).problem


def absorbing(shape: Index) -> Problem:
    """Two fields in two stages, with layers on all sides whose differences have a memory; some cells never change."""
    grid, depth = Grid(shape), 3
    fields = {name: _random(grid, name, k) for k, name in enumerate(("u", "v", "m"))}
    curves = [grid.profile(f"b{axis}", axis, np.linspace(0.2, 0.9, n)) for axis, n in enumerate(shape)]
    memory: dict[str, Any] = {}
    stages = []
    for half, lo, hi in (("u", 0, -1), ("v", 1, 0)):
        updates = []
        for parts in product((0, 1, 2), repeat=3):
            spans = [((lo, depth), (depth, n - depth), (n - depth, n + hi)) for n in shape]
            ends = [span[part] for part, span in zip(parts, spans, strict=True)]
            layers = {axis: end for axis, (part, end) in enumerate(zip(parts, ends, strict=True)) if part != 1}
            given = dict(fields)
            for axis, end in layers.items():
                name = f"psi.{half}.{axis}.{parts[axis]}"
                if name not in memory:
                    memory[name] = _random(grid, name, axis + 3 * parts[axis], within=grid.box.with_axis(axis, *end))
                given |= {f"psi{axis}": memory[name], f"b{axis}": curves[axis]}
            box = Box(*(tuple(end[k] for end in ends) for k in (0, 1)))
            updates.append(_faded(half, tuple(layers), tuple(given))(**given).within(box))
        stages.append(Stage(tuple(updates)))
    return Problem.of(stages)


def _faded(half: str, layers: tuple[int, ...], names: tuple[str, ...]) -> Any:
    """The update of u or v by differences of the other, those along some axes with a memory."""

    def update(**cells: Any) -> None:
        here, other, total = cells[half], cells["v" if half == "u" else "u"], 0.0
        for axis in range(3):
            step = tuple(int(k == axis) * (1 if half == "u" else -1) for k in range(3))
            difference = (1 + axis) * (other[step] - other[0, 0, 0])
            if axis in layers:
                psi = cells[f"psi{axis}"]
                psi.next[0, 0, 0] = moved = cells[f"b{axis}"][0, 0, 0] * psi[0, 0, 0] + difference
                difference = difference + moved
            total = difference + total
        here.next[0, 0, 0] = here[0, 0, 0] + 0.1 * cells["m"][0, 0, 0] * total

    kind = inspect.Parameter.KEYWORD_ONLY
    update.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return stencil(update)


def _random(grid: Grid, name: str, seed: int, within: Box | None = None) -> Field:
    return grid.field(name, np.random.default_rng(seed).uniform(0.1, 0.3, (within or grid.box).shape), within=within)
