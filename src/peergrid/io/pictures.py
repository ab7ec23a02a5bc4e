"""Still pictures as PNG, PDF or SVG: their style, their size, and the amplitudes that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from peergrid.files import replacing
from peergrid.grid import Array
from peergrid.io.colours import diverging

STYLE: Any = {"font.size": 9.0, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6}
STYLE["text.parse_math"] = False  # a $ in a title is a dollar sign
DPI = 200  # sharp in print at the width of a column
LARGEST = 1600  # pixels of a map along each axis
MOST_OUTLINED = 0.15  # of all cells

Gain = Literal["agc", "none"]
"""Automatic gain control, or amplitudes as they are."""


def robust_limit(values: Array, percentile: float = 99.5) -> float:
    """The amplitude that only the largest half per cent of the values exceed; 1 for a field of zeros."""
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.size or not sizes.any():
        return 1.0
    return float(np.percentile(sizes, percentile)) or float(sizes.max())


def file_part(name: str) -> str:
    """A name made safe for a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def unused(path: Path, made: Sequence[Path]) -> Path:
    """A path other than those in use, as two names may lead to the same file name."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(one for one in chain([path], numbered) if one not in made)


def titled(model: str, shown: str) -> str:
    """The title of a picture: that of the model, if it has one, and its subject."""
    return f"{model}: {shown}" if model else shown


def gain_window(samples: int) -> int:
    """The length of the window of automatic gain control in samples: a twelfth of the trace."""
    return max(1, samples // 12)


def running_level(values: Array) -> Array:
    """The root mean square over all receivers in a window of time around each sample, never below 1e-4 of its top.

    values: shape (receivers, samples); result: shape (samples,).
    """
    power = np.mean(np.asarray(values, np.float64) ** 2, axis=0)
    width = gain_window(len(power))
    level: Array = np.sqrt(np.convolve(power, np.full(width, 1 / width), mode="same"))
    return np.maximum(level, 1e-4 * level.max() or 1.0)


def section(
    path: Path,
    values: Array,
    across: tuple[Sequence[float], str],
    down: tuple[float, str],
    *,
    title: str,
    quantity: tuple[str, str],
    gain: Gain = "agc",
) -> None:
    """Traces side by side, time downwards.

    values: shape (traces, samples); across: the position of each trace, and the label of that axis; traces are drawn at
    even distances; down: the time between samples, and its unit; quantity: the name of the values, and their unit;
    gain: "agc" divides each time by the root mean square of all traces in a window around it, so that late echoes show.
    """
    (places, words), (each, unit), (name, of_values) = across, down, quantity
    label = f"{name} ({of_values})" if of_values else name
    if gain == "agc":
        label = f"{name}, automatic gain control (AGC), window {gain_window(values.shape[1]) * each:.3g} {unit}"
        values = values / running_level(values)
    limit = robust_limit(values, 97.0)
    half = (places[-1] - places[0]) / max(1, len(places) - 1) / 2 or 0.5
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 5.0), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        colours = ListedColormap(diverging(np.linspace(-1, 1, 255)) / 255)
        extent = (places[0] - half, places[-1] + half, (values.shape[1] - 1) * each, 0.0)
        step = 1 + values.shape[1] // LARGEST
        image = axes.imshow(values[:, ::step].T, extent=extent, aspect="auto", cmap=colours, vmin=-limit, vmax=limit)
        figure.colorbar(image, ax=axes, label=label, pad=0.02, extend="both")
        axes.set_xlabel(words)
        axes.set_ylabel(f"time ({unit})")
        axes.set_title(title)
        save(path, figure)


def curves(path: Path, values: Mapping[str, Array], each: float, words: str, title: str) -> None:
    """Values against time, a panel for each, with its label; each: the time between samples, in the unit of `words`."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.2 + 2.0 * len(values)), dpi=DPI, layout="constrained")
        panels = figure.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (label, one) in zip(panels, values.items(), strict=True):
            panel.plot(np.arange(len(one)) * each, one, color=diverging(np.array(-1.0)) / 255, lw=1.0)
            panel.set_ylabel(label)
            panel.grid(visible=True, linewidth=0.3)
            panel.margins(x=0)
        panels[-1].set_xlabel(words)
        panels[0].set_title(title)
        save(path, figure)


def outlines(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """The boundaries of materials; none if so many cells differ that lines would hide the picture."""
    edges = boundaries(cells)
    return edges if edges.mean() <= MOST_OUTLINED else np.zeros_like(edges)


def boundaries(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """True at each cell whose material differs from that of the next cell along x or y, same shape."""
    edges = np.zeros(cells.shape, dtype=np.bool_)
    edges[:-1] |= cells[:-1] != cells[1:]
    edges[:, :-1] |= cells[:, :-1] != cells[:, 1:]
    return edges


def save(path: Path, figure: Figure) -> None:
    """Write a figure, which gets its name when complete; the suffix is the format: .png, .pdf or .svg."""
    FigureCanvasAgg(figure)
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix.removeprefix("."))
    for image in (image for axes in figure.axes for image in axes.images):
        image.set_data([[0.0]])  # a figure has reference cycles: its arrays would stay until a garbage collection
    figure.clear()
