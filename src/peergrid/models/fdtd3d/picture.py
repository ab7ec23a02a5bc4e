"""The picture of a rasterised model: three slices through its first source, or the plane of one in two dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from peergrid.grid import Index
from peergrid.io.pictures import DPI, LARGEST, STYLE, save, titled
from peergrid.models.fdtd3d.build import BuiltDomain
from peergrid.models.fdtd3d.domain import AXES, PlaneWave

CONDUCTOR = (0.15, 0.15, 0.15)
COLOURS = "YlGnBu"


def picture_model(path: Path, built: BuiltDomain) -> None:
    """Draw relative permittivities, conductors, sources, receivers and the inner edges of absorbers.

    A slice normal to an axis has the media of E along that axis. Raises UsageError where the file cannot be written.
    """
    domain, nodes = built.domain, [source.node for source in built.domain.sources if not isinstance(source, PlaneWave)]
    middle = nodes[0] if nodes else tuple(n // 2 for n in domain.shape)
    flat = domain.invariant
    media = domain.media
    values = np.array([np.nan if medium.stops_electric else medium.permittivity for medium in media])
    shown = Normalize(1.0, max(2.0, float(np.nanmax(values, initial=1.0))))
    colours = matplotlib.colormaps[COLOURS]
    tints = np.where(np.isnan(values)[:, None], CONDUCTOR, colours(shown(np.nan_to_num(values)))[:, :3])
    with matplotlib.rc_context(STYLE):
        normals = (2, 1, 0) if flat is None else (flat,)
        figure = Figure(figsize=(4.0 * len(normals) + 1.0, 4.2), dpi=DPI, layout="constrained")
        for axes, normal in zip(figure.subplots(1, len(normals), squeeze=False)[0], normals, strict=True):
            _slice(axes, built, normal, middle, tints)
        figure.colorbar(ScalarMappable(shown, colours), ax=figure.axes, label="relative permittivity", shrink=0.7)
        figure.legend(handles=list(_legend(built)), loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(titled(built.model.title, "media" if flat is not None else "media through the first source"))
        save(path, figure)


def _slice(axes: Any, built: BuiltDomain, normal: int, middle: Index, tints: Any) -> None:
    domain = built.domain
    across, up = (axis for axis in range(3) if axis != normal)
    depth = min(middle[normal], domain.ids.shape[1 + normal] - 1)
    ids = domain.ids[normal].take(depth, axis=normal)
    ids = np.pad(ids[:-1, :-1], ((0, 1), (0, 1)), mode="edge")  # the last nodes are the wall
    step = 1 + max(ids.shape) // LARGEST
    edges = [(-0.5 * d, (n + 0.5) * d) for d, n in ((domain.spacing[a], domain.shape[a]) for a in (across, up))]
    image = tints[ids[::step, ::step].T]
    axes.imshow(image, origin="lower", extent=(*edges[0], *edges[1]), interpolation="nearest")
    for source in domain.sources:
        if not isinstance(source, PlaneWave):
            place = built.place(source.node)
            axes.scatter(place[across], place[up], s=60, marker="*", color="tab:red", lw=0)
    for recorder in built.recorders:
        place = built.place(recorder.node)
        axes.scatter(place[across], place[up], s=14, marker="v", color="tab:orange", lw=0)
    for side, slab in domain.absorber.slabs:
        axis = AXES.index(side[0])
        if slab.cells and axis != normal:
            at = (slab.cells if side[1] == "-" else domain.shape[axis] - slab.cells) * domain.spacing[axis]
            (axes.axvline if axis == across else axes.axhline)(at, color="0.3", lw=0.6, ls="--")
    axes.set(xlabel=f"{AXES[across]} (m)", ylabel=f"{AXES[up]} (m)")
    axes.set(xlim=(0.0, edges[0][1] + edges[0][0]), ylim=(0.0, edges[1][1] + edges[1][0]))
    if domain.invariant is None:
        axes.set_title(f"{AXES[normal]} = {depth * domain.spacing[normal]:.4g} m")


def _legend(built: BuiltDomain) -> Iterator[Any]:
    domain = built.domain
    if any(medium.stops_electric for medium in domain.media):
        yield Patch(facecolor=CONDUCTOR, label="conductor")
    if domain.sources:
        yield Line2D([], [], color="tab:red", marker="*", lw=0, label="source")
    if built.recorders:
        yield Line2D([], [], color="tab:orange", marker="v", lw=0, label="receiver")
    if any(slab.cells for _, slab in domain.absorber.slabs):
        yield Line2D([], [], color="0.3", lw=0.6, ls="--", label="absorber")
