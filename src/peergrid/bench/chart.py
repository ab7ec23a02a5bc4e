"""The chart of a suite: a panel for each problem, a line for each series over the devices, and the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peergrid.bench.measure import Measured
from peergrid.bench.suites import Metric

NAMES: dict[Metric, tuple[str, float]] = {
    "gcells_per_s": ("GCells/s", 1.0),
    "seconds_per_step": ("µs per step", 1e6),
    "efficiency": ("parallel efficiency, %", 100.0),
}
SEVERAL = ", deep"  # at the end of series with several steps between exchanges
WIDTH, HEIGHT = 4.5, 4.5  # inches of a panel
Line = tuple[list[int], list[float]]


def draw(path: Path, title: str, metric: Metric, rows: Sequence[Measured]) -> None:
    """Write the chart as a PNG file."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        chart(title, metric, rows).savefig(path)


def chart(title: str, metric: Metric, rows: Sequence[Measured]) -> Figure:
    """Make the figure; series that differ only in depth share a colour, and a star marks the best one of each count."""
    panels = list(dict.fromkeys(_panel(metric, row) for row in rows))
    lines = list(dict.fromkeys(_line(metric, row).removesuffix(SEVERAL) for row in rows))
    palette = mpl.colormaps["tab10" if len(lines) <= 10 else "tab20"](range(20)).tolist()
    colours = dict(zip(lines, palette * (1 + len(lines) // 20), strict=False))
    label, _ = NAMES[metric]
    scale = {} if metric == "efficiency" else {"yscale": "log"}
    figure = Figure(figsize=(max(8.0, WIDTH * len(panels) + 2), HEIGHT), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for place, panel in zip(axes, panels, strict=True):
        mine = [row for row in rows if _panel(metric, row) == panel]
        place.set(title=panel, xlabel="devices", xscale="log", **scale)
        _lines(place, metric, mine, colours)
        _ideal(place, metric, mine)
        _best(place, metric, mine)
        counts = sorted({row.count for row in mine})
        place.set_xticks(counts, [str(count) for count in counts])
        place.set_xticks([], minor=True)
        place.grid(visible=True, which="both", linewidth=0.3)
    axes[0].set_ylabel(label)
    named = {text: handle for ax in axes for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside right upper", fontsize=7, frameon=False)
    return figure


def _lines(axes: Any, metric: Metric, rows: Sequence[Measured], colours: dict[str, Any]) -> None:
    for name in dict.fromkeys(_line(metric, row) for row in rows):
        found = sorted((row for row in rows if _line(metric, row) == name), key=lambda row: row.count)
        style, colour = "--" if name.endswith(SEVERAL) else "-", colours[name.removesuffix(SEVERAL)]
        axes.plot(*_points(metric, found), style, marker="o", markersize=3.5, linewidth=1.2, color=colour, label=name)


def _best(axes: Any, metric: Metric, rows: Sequence[Measured]) -> None:
    """A star at the best value of each count."""
    choose = min if metric == "seconds_per_step" else max
    for count in sorted({row.count for row in rows}):
        counts, values = _points(metric, [row for row in rows if row.count == count])
        if values:
            axes.plot(counts[:1], choose(values), "*", color="black", markersize=9, linestyle="", label="best")


def _ideal(axes: Any, metric: Metric, rows: Sequence[Measured]) -> None:
    """The ideal of each group: the rate of its fastest single device times the number of devices."""
    counts = sorted({row.count for row in rows})
    for base in dict.fromkeys(row.base for row in rows) if metric == "gcells_per_s" else ():
        single = max((row.gcells_per_s for row in rows if row.base == base and row.count == 1), default=None)
        if single is not None:
            axes.plot(counts, [single * n for n in counts], ":", color="grey", linewidth=1, label="ideal")
    if metric == "efficiency":
        axes.axhline(100, linestyle=":", color="grey", linewidth=1, label="ideal")


def _points(metric: Metric, rows: Sequence[Measured]) -> Line:
    scale = NAMES[metric][1]
    pairs = [(row.count, value * scale) for row in rows if (value := getattr(row, metric)) is not None]
    return [count for count, _ in pairs], [value for _, value in pairs]


def _panel(metric: Metric, row: Measured) -> str:
    """The panel of a series: by the problem in its name; of times of a step, also by the size of the grid."""
    problem, colon, _ = row.series.partition(": ")
    return problem if colon else row.base.removesuffix(SEVERAL) if metric == "seconds_per_step" else ""


def _line(metric: Metric, row: Measured) -> str:
    return row.series.removeprefix(_panel(metric, row)).removeprefix(":").strip()
