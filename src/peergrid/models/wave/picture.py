"""Pictures of seismic waves: a gather, traces side by side with time downwards; a survey; a medium before it runs."""

from __future__ import annotations

from pathlib import Path

import h5py
import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from peergrid.io.colours import diverging
from peergrid.io.pictures import LARGEST, STYLE, Gain, robust_limit, save, section, titled
from peergrid.models.survey import distances
from peergrid.models.wave.shot import Gather, Shot


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
        figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02, extend="both", label="pressure")
        save(path, figure)


def picture_medium(path: Path, shot: Shot, title: str) -> None:
    """The velocity with sources and receivers, x to the right and depth downwards; in 3D the section of the first
    source, with all receivers projected onto it.
    """
    medium = shot.propagator.medium
    values = np.broadcast_to(medium.values("velocity"), medium.shape)
    where = ""
    if medium.ndim == 3:
        y = shot.source_positions[0][1]
        row = round(y / medium.spacings[1])
        values, where = values[:, row], f"section at y = {row * medium.spacings[1]:g} m"
    step = 1 + max(values.shape) // LARGEST
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        right, down = medium.extent[0], medium.extent[-1]
        image = axes.imshow(
            values[::step, ::step].T,
            extent=(0.0, right, down, 0.0),
            aspect="auto",
            cmap="cividis",
            interpolation="none",
        )
        for places, marker, colour, label in (
            (shot.receiver_positions, "v", "white", "receivers"), (shot.source_positions, "*", "red", "sources"),
        ):  # fmt: skip
            if len(places):
                axes.plot(places[:, 0], places[:, -1], marker, ms=9 if marker == "*" else 4, mfc=colour, mec="black",
                          mew=0.5, label=label, clip_on=False)  # fmt: skip
        axes.set_xlabel("x (m)")
        axes.set_ylabel("depth (m)")
        axes.set_title(titled(title, where) if where else title)
        axes.legend(loc="lower left", fontsize=8)
        figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02, label="velocity (m/s)")
        save(path, figure)


def picture_survey(path: Path, file: h5py.File, title: str, gain: Gain) -> None:
    """The traces of the first receiver for all shots side by side; file: the merged results."""
    words, along = distances(file["sources"][:], file["receivers"][:, 0])
    section(
        path,
        file["traces"][:, 0],
        (along, words),
        (float(file.attrs["dt"]), "s"),
        title=titled(title, "the first receiver of each shot"),
        quantity=("pressure", ""),
        gain=gain,
    )
