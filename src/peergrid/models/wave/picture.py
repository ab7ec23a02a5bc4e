"""The picture of a gather: traces side by side, time downwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from peergrid.io.colours import diverging
from peergrid.io.pictures import LARGEST, STYLE, gained, robust_limit, save, section, titled
from peergrid.models.survey import Trace, distances
from peergrid.models.wave.shot import Gather


def picture_gather(path: Path, gather: Gather, title: str) -> None:
    """The traces in the order of the receivers, as a PNG file."""
    step = 1 + max(gather.traces.shape) // LARGEST
    shown = gather.traces[::step, ::step]
    limit = robust_limit(shown)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7, 6), layout="constrained")
        axes = figure.add_subplot()
        colours = ListedColormap(diverging(np.linspace(-1, 1, 255)) / 255)
        edges = (0.5, len(gather.traces) + 0.5, gather.traces.shape[1] * gather.dt, 0.0)
        image = axes.imshow(shown.T, extent=edges, aspect="auto", cmap=colours, vmin=-limit, vmax=limit)
        axes.set_xlabel("receiver")
        axes.set_ylabel("time (s)")
        axes.set_title(title)
        figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02, extend="both")
        save(path, figure)


def picture_survey(path: Path, traces: Sequence[Trace], gathers: Sequence[Gather], title: str) -> None:
    """The traces of the first receiver for all shots side by side, with gain."""
    words, along = distances(traces)
    values = np.stack([gather.traces[0] for gather in gathers])
    section(
        path,
        values,
        (along, words),
        (gathers[0].dt, "time (s)"),
        title=titled(title, "the first receiver of each shot"),
        label=gained("pressure", values.shape[1], gathers[0].dt, "s"),
    )
