"""Still pictures as PNG: their style, their size, and the amplitudes that they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peergrid.grid import Array
from peergrid.io.atomic import replacing

STYLE: Any = {"font.size": 9.0, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6}
STYLE["text.parse_math"] = False  # a $ in a title is a dollar
DPI = 200  # sharp in print at the width of a column
LARGEST = 1600  # pixels of a map along each axis


def robust_limit(values: Array, percentile: float = 99.5) -> float:
    """The amplitude that only the largest half per cent of the values pass; 1 where there is no field."""
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.size or not sizes.any():
        return 1.0
    return float(np.percentile(sizes, percentile)) or float(sizes.max())


def running_level(values: Array, share: float = 1 / 12) -> Array:
    """The root mean square over all receivers in a window of time around each sample, never below 1e-4 of its top.

    values: shape (receivers, samples); result: shape (samples,).
    """
    power = np.mean(np.asarray(values, np.float64) ** 2, axis=0)
    width = max(1, int(share * len(power)))
    level: Array = np.sqrt(np.convolve(power, np.full(width, 1 / width), mode="same"))
    return np.maximum(level, 1e-4 * level.max() or 1.0)


def save(path: Path, figure: Figure) -> None:
    """Write a figure under its final name only when complete."""
    canvas: Any = FigureCanvasAgg(figure)
    with replacing(path) as partial:
        canvas.print_png(partial)
    figure.clear()  # its parts refer to each other, and would stay for a while
