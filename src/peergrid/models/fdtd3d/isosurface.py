"""Pictures of a field in three dimensions: the surfaces on which it has some amplitude, around the conductors.

Triangles are those of scikit-image (marching cubes; T. Lewiner et al., J. Graphics Tools 8 (2003) 1), an extra.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from peergrid.grid import Array
from peergrid.io.colours import diverging
from peergrid.io.extras import surface_library
from peergrid.io.pictures import DPI, STYLE, save, titled
from peergrid.models.fdtd3d.build import BuiltDomain
from peergrid.models.fdtd3d.domain import AXES, PlaneWave

FINEST = 80  # nodes along each axis, of which surfaces are made at most
GREY = np.full(3, 0.6)  # of conductors
SHADE = 0.75  # of a surface's colour, from white to the strongest


def picture_surfaces(path: Path, built: BuiltDomain, name: str, values: Array, time: float, level: float) -> None:
    """The surfaces of one component at ± an amplitude; values: those of a snapshot, SI units; time: seconds.

    Raises UsageError where the file cannot be written.
    """
    domain = built.domain
    step, stride = max(1, -(-max(values.shape) // FINEST)), built.model.snapshots.stride
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 5.6), dpi=DPI, layout="constrained")
        axes = figure.add_subplot(projection="3d")
        for sign in (1, -1):
            colour = diverging(np.array(sign * SHADE)) / 255
            _add(axes, built, sign * values[::step, ::step, ::step], level, step * stride, colour, 0.45)
        for conducting in _conductors(built, step * stride):
            _add(axes, built, conducting, 0.5, step * stride, GREY, 0.9)
        for source in domain.sources:
            if not isinstance(source, PlaneWave):
                axes.scatter(*built.place(source.node), s=60, marker="*", color="tab:red", lw=0)
        for recorder in built.recorders:
            axes.scatter(*built.place(recorder.node), s=14, marker="v", color="tab:orange", lw=0)
        lengths = [n * d for n, d in zip(domain.shape, domain.spacing, strict=True)]
        for axis, length in zip(AXES, lengths, strict=True):
            axes.set(**{f"{axis}lim": (0.0, length), f"{axis}label": f"{axis} (m)"})
            axes.locator_params(axis, nbins=5)
        axes.set_box_aspect(lengths)
        axes.set_title(f"± {level:.3g} {built.unit_names[name]}")
        figure.suptitle(titled(built.model.title, f"{name} at {time * 1e9:.2f} ns"))
        save(path, figure)


def _add(axes: Any, built: BuiltDomain, values: Array, level: float, step: int, colour: Array, alpha: float) -> None:
    """The surface on which values on every so many nodes have a level; none where they do not reach it."""
    if min(values.shape) < 2 or not float(values.min()) < level < float(values.max()):
        return
    spacing = tuple(step * d for d in built.domain.spacing)
    corners, triangles, *_ = surface_library().marching_cubes(np.asarray(values, np.float32), level, spacing=spacing)
    axes.plot_trisurf(*corners.T, triangles=triangles, color=colour, alpha=alpha, lw=0, rasterized=True)


def _conductors(built: BuiltDomain, step: int) -> Iterator[NDArray[np.float32]]:
    """A field that is 1 on nodes with a conductor and 0 on others, on every `step`-th; none without conductors."""
    conducts = np.array([medium.stops_electric for medium in built.domain.media])
    if conducts.any():
        there: NDArray[np.bool_] = conducts[built.domain.ids[:3, ::step, ::step, ::step]]
        yield np.asarray(there.any(axis=0), np.float32)
