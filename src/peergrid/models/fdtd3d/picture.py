"""Pictures of a rasterised model and of its fields: three slices through a node, or the plane of two dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from peergrid.grid import Array, Index
from peergrid.io.colours import OUTLINE, diverging
from peergrid.io.pictures import DPI, LARGEST, STYLE, outlines, save, titled
from peergrid.models.fdtd3d.build import BuiltDomain
from peergrid.models.fdtd3d.domain import AXES, MediaIds, PlaneWave
from peergrid.models.waveforms import Doubles

CONDUCTOR = (0.15, 0.15, 0.15)
COLOURS = "YlGnBu"
FINE = 600  # pixels of the lines between media
CLASSES = 12  # of media by permittivity, for outlines and films


def picture_model(path: Path, built: BuiltDomain) -> None:
    """Draw relative permittivities, conductors, sources, receivers and the inner edges of absorbers.

    A slice normal to an axis has the media of E along that axis. Raises UsageError where the file cannot be written.
    """
    middle, flat = through(built), built.domain.invariant
    shown, colours = _scale(built), matplotlib.colormaps[COLOURS]
    values = permittivities(built)
    tints = np.where(np.isnan(values)[:, None], CONDUCTOR, colours(shown(np.nan_to_num(values)))[:, :3])
    with matplotlib.rc_context(STYLE):
        figure = _figure(built)
        for axes, normal in zip(figure.axes, normals(built), strict=True):
            ids = section_ids(built, normal, middle)
            step = 1 + max(ids.shape) // LARGEST
            image = tints[ids[::step, ::step].T]
            axes.imshow(image, origin="lower", extent=_extent(built, normal), interpolation="nearest")
            _mark(axes, built, normal, middle)
        figure.colorbar(ScalarMappable(shown, colours), ax=figure.axes, label="relative permittivity", shrink=0.7)
        figure.legend(handles=list(_legend(built)), loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(titled(built.model.title, "media" if flat is not None else "media through the first source"))
        save(path, figure)


def picture_field(
    path: Path, built: BuiltDomain, name: str, slices: Mapping[int, Array], time: float, limit: float
) -> None:
    """One component over the outlines of the media; slices: its values by the axes that they are normal to, SI units.

    time: seconds; limit: the amplitude that colours reach to. Raises as `picture_model`.
    """
    middle = through(built)
    colours = ListedColormap(diverging(np.linspace(-1, 1, 255)) / 255)
    with matplotlib.rc_context(STYLE):
        figure = _figure(built)
        for axes, (normal, values) in zip(figure.axes, slices.items(), strict=True):
            step = 1 + max(values.shape) // LARGEST
            extent = _extent(built, normal)
            image = axes.imshow(
                values[::step, ::step].T, origin="lower", extent=extent, cmap=colours, vmin=-limit, vmax=limit
            )
            _outline(axes, media_classes(built)[section_ids(built, normal, middle)], extent)
            _mark(axes, built, normal, middle)
        label = f"{name} ({built.unit_names[name]})"
        figure.colorbar(image, ax=figure.axes, label=label, shrink=0.7, extend="both")
        figure.suptitle(titled(built.model.title, f"{name} at {time * 1e9:.2f} ns"))
        save(path, figure)


def normals(built: BuiltDomain) -> tuple[int, ...]:
    """The axes that slices are normal to."""
    flat = built.domain.invariant
    return (2, 1, 0) if flat is None else (flat,)


def through(built: BuiltDomain) -> Index:
    """The node that slices go through: that wished for, or the first source's, or the middle; a plane has no other."""
    domain = built.domain
    if built.pictures.through is not None and domain.invariant is None:
        wished = (round(x / d) for x, d in zip(built.pictures.through, domain.spacing, strict=True))
        return tuple(min(max(i, 0), n) for i, n in zip(wished, domain.shape, strict=True))
    nodes = (source.node for source in domain.sources if not isinstance(source, PlaneWave))
    return next(nodes, tuple(n // 2 for n in domain.shape))


def permittivities(built: BuiltDomain) -> Doubles:
    """Of each medium; nan of a conductor."""
    return np.array([np.nan if medium.stops_electric else medium.permittivity for medium in built.domain.media])


def media_classes(built: BuiltDomain) -> NDArray[np.intp]:
    """For each medium the number of its class: conductors, and the others by permittivity, in few classes.

    Averages at surfaces are in the class of what they are closest to.
    """
    values = permittivities(built)
    shown = _scale(built)
    return np.where(np.isnan(values), CLASSES, np.rint(shown(np.nan_to_num(values)) * (CLASSES - 1))).astype(np.intp)


def section_ids(built: BuiltDomain, normal: int, middle: Index) -> MediaIds:
    """The media of E along the normal in the plane of cells through a node, shape (across, up)."""
    ids = built.domain.ids[normal]
    plane: MediaIds = ids.take(min(middle[normal], ids.shape[normal] - 1), axis=normal)
    return np.pad(plane[:-1, :-1], ((0, 1), (0, 1)), mode="edge")  # the last nodes are the wall


def _scale(built: BuiltDomain) -> Normalize:
    return Normalize(1.0, max(2.0, float(np.nanmax(permittivities(built), initial=1.0))))


def _figure(built: BuiltDomain) -> Figure:
    count = len(normals(built))
    figure = Figure(figsize=(4.0 * count + 1.0, 4.2), dpi=DPI, layout="constrained")
    figure.subplots(1, count, squeeze=False)
    return figure


def _plane(normal: int) -> tuple[int, int]:
    """The axes across and up of a slice."""
    across, up = (axis for axis in range(3) if axis != normal)
    return across, up


def _extent(built: BuiltDomain, normal: int) -> tuple[float, float, float, float]:
    (a, b), (c, d) = (
        (-0.5 * built.domain.spacing[axis], (built.domain.shape[axis] + 0.5) * built.domain.spacing[axis])
        for axis in _plane(normal)
    )
    return a, b, c, d


def _outline(axes: Any, classes: NDArray[np.intp], extent: tuple[float, float, float, float]) -> None:
    """Lines between classes, an image with nothing elsewhere, each cell as many pixels as there is room for."""
    step, fold = 1 + max(classes.shape) // LARGEST, max(1, FINE // max(classes.shape))
    edges = outlines(classes[::step, ::step].repeat(fold, axis=0).repeat(fold, axis=1)).T
    lines = np.zeros((*edges.shape, 4), np.uint8)
    lines[edges] = (*OUTLINE, 191)
    axes.imshow(lines, origin="lower", extent=extent, interpolation="antialiased")


def _mark(axes: Any, built: BuiltDomain, normal: int, middle: Index) -> None:
    """Sources, receivers, absorbers, and where the slice is."""
    domain, (across, up) = built.domain, _plane(normal)
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
    axes.set(xlim=(0.0, domain.shape[across] * domain.spacing[across]))
    axes.set(ylim=(0.0, domain.shape[up] * domain.spacing[up]))
    if domain.invariant is None:
        depth = min(middle[normal], domain.shape[normal])
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
