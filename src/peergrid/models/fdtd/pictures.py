"""Still pictures: the model, one snapshot, the receivers. Positions in metres, times in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from peergrid.grid import Array
from peergrid.io.colours import OUTLINE, diverging, shades
from peergrid.io.pictures import DPI, LARGEST, STYLE, curves, outlines, robust_limit, save, section, titled
from peergrid.models.fdtd.build import UNIT_NAMES, Built, ModelReceiver
from peergrid.models.fdtd.materials import CONDUCTOR
from peergrid.models.fdtd.model import PlaneWave
from peergrid.models.fdtd.results import from_rest
from peergrid.models.fdtd.tints import MOST_NAMED, material_tints
from peergrid.models.positions import read_section

FEW_RECEIVERS = 20


def picture_model(path: Path, built: Built) -> None:
    """The materials with sources (stars, lines for plane waves), receivers (triangles) and absorbers (dashed)."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _map_axes(built)
        _show_materials(axes, built)
        _mark(axes, built)
        _explain(figure, axes, built)
        axes.set_title(built.model.title)
        save(path, figure)


def picture_snapshot(
    path: Path, built: Built, field: str, values: Array, time: float, limit: float | None = None
) -> None:
    """One field over the materials' outlines; values in SI units, at the nodes or every n-th of them.

    limit: the amplitude of the strongest colour, by default from these values.
    """
    most = robust_limit(values) if limit is None else limit
    with matplotlib.rc_context(STYLE):
        figure, axes = _map_axes(built)
        colours = ListedColormap(diverging(np.linspace(-1, 1, 255)) / 255)
        step = 1 + max(values.shape) // LARGEST
        image = axes.imshow(
            values[::step, ::step].T, origin="lower", extent=_extent(built), cmap=colours, vmin=-most, vmax=most
        )
        _outline(axes, built)
        _mark(axes, built)
        figure.colorbar(image, ax=axes, label=f"{field} ({UNIT_NAMES[field]})", shrink=0.85, pad=0.02, extend="both")
        axes.set_title(titled(built.model.title, f"{field} at {time * 1e9:.2f} ns"))
        save(path, figure)


def picture_receiver(path: Path, built: Built, recorder: ModelReceiver, traces: Mapping[str, Array]) -> None:
    """The traces of one receiver against time, one panel for each field."""
    values = {
        f"{component} ({UNIT_NAMES[component]})": from_rest(traces[name], built.units[component])
        for component, name in recorder.traces.items()
    }
    x, y = recorder.position
    curves(path, values, built.dt * 1e9, "time (ns)", f"Receiver '{recorder.name}' at ({x:g}, {y:g}) m")


def picture_section(path: Path, built: Built, recorders: Sequence[ModelReceiver], traces: Mapping[str, Array]) -> None:
    """The traces of a line of receivers side by side: their place against time, with the gain that is asked for."""
    component = next(iter(recorders[0].traces))
    values = np.stack([from_rest(traces[r.traces[component]], built.units[component]) for r in recorders])
    section(
        path,
        values,
        places(np.array([one.position for one in recorders])),
        (built.dt * 1e9, "ns"),
        title=titled(built.model.title, component),
        quantity=(component, UNIT_NAMES[component]),
        gain=built.model.output.gain,
    )


def places(positions: Array) -> tuple[list[float], str]:
    """The axis along receivers, shape (n, 2), and its label: x or y of the model, or the distance from the first."""
    for axis, other, words in ((0, 1, "x (m)"), (1, 0, "y (m)")):
        if np.ptp(positions[:, other]) == 0 and np.all(np.diff(positions[:, axis]) > 0):
            return [float(one) for one in positions[:, axis]], words
    return [float(one) for one in np.linalg.norm(positions - positions[0], axis=1)], "distance along the receivers (m)"


def picture_survey(path: Path, built: Built, number: int, file: h5py.File) -> None:
    """The traces of a survey side by side, as `picture_section` draws them; number: of the receiver, from 0; file: the
    merged results.
    """
    recorder = built.recorders[number]
    component = next(iter(recorder.traces))
    values, across = read_section(file, f"rxs/rx{number + 1}/{component}", number)
    section(
        path,
        values,
        across,
        (built.dt * 1e9, "ns"),
        title=titled(built.model.title, f"{component} at '{recorder.name}'"),
        quantity=(component, UNIT_NAMES[component]),
        gain=built.model.output.gain,
    )


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
    edges = outlines(built.geometry.cells[::step, ::step]).T
    image = np.zeros((*edges.shape, 4), np.uint8)
    image[edges] = (*OUTLINE, 191)
    axes.imshow(image, origin="lower", extent=_extent(built), interpolation="antialiased")


def _explain(figure: Figure, axes: Any, built: Built) -> None:
    """A legend of the materials and marks; of many materials a bar of permittivities."""
    materials, used = built.geometry.materials, built.geometry.used
    tints = material_tints(materials) / 255
    handles: list[Any] = []
    if len(materials) <= MOST_NAMED:
        handles = [
            Patch(facecolor=tint, edgecolor="0.3", linewidth=0.6, label=material.name)
            for material, tint in zip(materials, tints, strict=True)
            if material in used
        ]
    else:
        values = np.array([one.permittivity for one in materials if one != CONDUCTOR])
        scale = Normalize(values.min(), values.max())
        colours = ListedColormap(shades(np.linspace(0, 1, 255)) / 255)
        figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="relative permittivity", shrink=0.85, pad=0.02)
    if built.model.absorbing:
        handles.append(Line2D([], [], color="0.3", lw=0.6, ls="--", label="absorber"))
    if handles:
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if len(materials) <= MOST_NAMED else {}
        axes.legend(handles=handles, frameon=not beside, **beside)


def _mark(axes: Any, built: Built) -> None:
    """Receivers, sources, and the inner edges of absorbers."""
    width, height = built.model.grid.size
    if built.recorders:
        places = zip(*(r.position for r in built.recorders), strict=True)
        area = 30 if len(built.recorders) <= FEW_RECEIVERS else 8  # many lie close together
        axes.scatter(*places, s=area, marker="v", color="0.15", lw=0)
    for source, emitter in zip(built.model.sources, built.emitters, strict=True):
        if isinstance(source, PlaneWave):
            _mark_sheet(axes, source, emitter.position, 0.06 * min(width, height))
        else:
            axes.scatter(*emitter.position, s=60, marker="*", color="0.0", lw=0)
    for side in built.model.absorbing:
        axis, size = (0, width) if side[0] == "x" else (1, height)
        thick = built.model.thickness(side) * built.geometry.spacing[axis]
        draw = axes.axhline if axis else axes.axvline
        draw(thick if side[1] == "-" else size - thick, color="0.3", lw=0.6, ls="--")
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)


def _mark_sheet(axes: Any, wave: PlaneWave, middle: tuple[float, ...], length: float) -> None:
    """A line where a plane wave enters, and an arrow in its direction."""
    along_x = wave.direction[1] == "x"
    (axes.axvline if along_x else axes.axhline)(wave.position, color="0.0", lw=1.0)
    way = length if wave.direction[0] == "+" else -length
    end = (middle[0] + way, middle[1]) if along_x else (middle[0], middle[1] + way)
    axes.annotate("", xy=end, xytext=middle, arrowprops={"arrowstyle": "-|>", "color": "0.0", "lw": 1.0})
