"""The chart of a suite: one line per series over the number of devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peergrid.bench.measure import Measured
from peergrid.bench.suites import Metric

NAMES: dict[Metric, tuple[str, float]] = {
    "gcells_per_s": ("GCells/s", 1.0),
    "seconds_per_step": ("µs per step", 1e6),
}


def draw(path: Path, title: str, metric: Metric, rows: Sequence[Measured]) -> None:
    """Write a PNG."""
    label, scale = NAMES[metric]
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(xscale="log", yscale="log", title=title, xlabel="devices", ylabel=label)
        colours = mpl.colormaps["tab20"]
        for number, series in enumerate(dict.fromkeys(row.series for row in rows)):
            mine = sorted((row for row in rows if row.series == series), key=lambda row: row.count)
            points = [row.count for row in mine], [scale * getattr(row, metric) for row in mine]
            axes.plot(*points, marker="o", markersize=3.5, linewidth=1.2, color=colours(number % 20), label=series)
        counts = sorted({row.count for row in rows})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xticks([], minor=True)
        axes.grid(visible=True, which="both", linewidth=0.3)
        figure.legend(loc="outside right upper", fontsize=7, frameon=False)
        figure.savefig(path)
