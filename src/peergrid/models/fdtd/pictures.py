"""Still pictures as PNG: the model, one snapshot, the receivers. Positions in metres, times in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from peergrid.grid import Array
from peergrid.io.colours import diverging
from peergrid.io.pictures import DPI, LARGEST, STYLE, robust_limit, save, section
from peergrid.models.fdtd.build import Built, ModelReceiver
from peergrid.models.fdtd.results import from_rest
from peergrid.models.fdtd.tints import OUTLINE, material_tints
from peergrid.models.survey import Trace, distances

UNITS = {"Ez": "V/m", "Hx": "A/m", "Hy": "A/m"}


def picture_model(path: Path, built: Built) -> None:
    """The materials with sources (stars) and receivers (triangles)."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _map_axes(built)
        _show_materials(axes, built)
        _mark(axes, built)
        tints = material_tints(built.geometry.materials) / 255
        used = built.geometry.used
        patches = [
            Patch(facecolor=tint, edgecolor="0.3", linewidth=0.6, label=material.name)
            for material, tint in zip(built.geometry.materials, tints, strict=True)
            if material in used
        ]
        axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        axes.set_title(built.model.model.title)
        save(path, figure)


def picture_snapshot(path: Path, built: Built, field: str, values: Array, time: float) -> None:
    """One field over the materials' outlines; values in SI units, at the nodes or every n-th of them."""
    limit = robust_limit(values)
    with matplotlib.rc_context(STYLE):
        figure, axes = _map_axes(built)
        colours = ListedColormap(diverging(np.linspace(-1, 1, 255)) / 255)
        step = 1 + max(values.shape) // LARGEST
        image = axes.imshow(
            values[::step, ::step].T, origin="lower", extent=_extent(built), cmap=colours, vmin=-limit, vmax=limit
        )
        _outline(axes, built)
        _mark(axes, built)
        figure.colorbar(image, ax=axes, label=f"{field} ({UNITS[field]})", shrink=0.85, pad=0.02, extend="both")
        axes.set_title(f"{built.model.model.title}: {field} at {time * 1e9:.2f} ns")
        save(path, figure)


def picture_receiver(path: Path, built: Built, recorder: ModelReceiver, traces: Mapping[str, Array]) -> None:
    """The traces of one receiver against time, one panel for each field."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.2 + 2.0 * len(recorder.traces)), dpi=DPI, layout="constrained")
        panels = figure.subplots(len(recorder.traces), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (component, name) in zip(panels, recorder.traces.items(), strict=True):
            values = from_rest(traces[name], built.units[component])
            panel.plot(np.arange(len(values)) * built.dt * 1e9, values, color=diverging(np.array(-1.0)) / 255, lw=1.0)
            panel.set_ylabel(f"{component} ({UNITS[component]})")
            panel.grid(visible=True, linewidth=0.3)
            panel.margins(x=0)
        panels[-1].set_xlabel("time (ns)")
        x, y = recorder.position
        panels[0].set_title(f"Receiver '{recorder.name}' at ({x:g}, {y:g}) m")
        save(path, figure)


def picture_section(path: Path, built: Built, recorders: Sequence[ModelReceiver], traces: Mapping[str, Array]) -> None:
    """The traces of a line of receivers side by side: distance along the line against time, gained to one level.

    Each time is divided by the root mean square of all receivers in a window around it, so that late echoes show.
    """
    component = next(iter(recorders[0].traces))
    values = np.stack([from_rest(traces[r.traces[component]], built.units[component]) for r in recorders])
    start = np.array(recorders[0].position)
    along = [float(np.linalg.norm(np.array(one.position) - start)) for one in recorders]
    section(
        path,
        values,
        (along, "distance along the receivers (m)"),
        (built.dt * 1e9, "time (ns)"),
        title=f"{built.model.model.title}: {component} with gain",
        label=f"{component} over the running r.m.s.",
    )


def picture_survey(path: Path, built: Built, recorder: ModelReceiver, row: int, traces: Sequence[Trace]) -> None:
    """The traces of a survey side by side, gained as `picture_section` does; row: of the receiver's first field."""
    component = next(iter(recorder.traces))
    words, along = distances(traces, row)
    section(
        path,
        np.stack([from_rest(one.values[row]) for one in traces]),
        (along, words),
        (built.dt * 1e9, "time (ns)"),
        title=f"{built.model.model.title}: {component} at '{recorder.name}' with gain",
        label=f"{component} over the running r.m.s.",
    )


def boundaries(cells: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """True at each cell whose material differs from that of the next along x or y, same shape."""
    edges = np.zeros(cells.shape, dtype=np.bool_)
    edges[:-1] |= cells[:-1] != cells[1:]
    edges[:, :-1] |= cells[:, :-1] != cells[:, 1:]
    return edges


def _map_axes(built: Built) -> tuple[Figure, Any]:
    width, height = built.model.grid.size
    figure = Figure(figsize=(8.0, float(np.clip(7.0 * height / width, 2.0, 9.0)) + 0.6), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.set_aspect("equal")
    return figure, axes


def _extent(built: Built) -> tuple[float, float, float, float]:
    return 0.0, built.model.grid.size[0], 0.0, built.model.grid.size[1]


def _show_materials(axes: Any, built: Built) -> None:
    step = 1 + max(built.geometry.cells.shape) // LARGEST
    image = material_tints(built.geometry.materials)[built.geometry.cells[::step, ::step].T]
    axes.imshow(image, origin="lower", extent=_extent(built), interpolation="nearest")
    _outline(axes, built)


def _outline(axes: Any, built: Built) -> None:
    """Lines between materials, drawn as an image with nothing elsewhere."""
    step = 1 + max(built.geometry.cells.shape) // LARGEST
    edges = boundaries(built.geometry.cells[::step, ::step]).T
    image = np.zeros((*edges.shape, 4), np.uint8)
    image[edges] = (*OUTLINE, 191)
    axes.imshow(image, origin="lower", extent=_extent(built), interpolation="antialiased")


def _mark(axes: Any, built: Built) -> None:
    if built.recorders:
        axes.scatter(*zip(*(r.position for r in built.recorders), strict=True), s=8, marker="v", color="0.15", lw=0)
    if built.emitters:
        axes.scatter(*zip(*(e.position for e in built.emitters), strict=True), s=60, marker="*", color="0.0", lw=0)
    axes.set_xlim(0, built.model.grid.size[0])
    axes.set_ylim(0, built.model.grid.size[1])
