"""Animations of a field over a map: GIF by Pillow, MP4 if imageio-ffmpeg is installed.

Every frame is drawn in a palette fixed beforehand, a level of the field over the tint of a material, so that nothing is
dithered and files stay small. Amplitudes fall by orders of magnitude as waves spread; each frame is scaled by a smooth
envelope of the amplitude, and shows its scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from peergrid.files import replacing
from peergrid.grid import Array
from peergrid.io.colours import LEVELS, OUTLINE, Rgb, wave_colours
from peergrid.io.extras import film_library
from peergrid.io.pictures import STYLE, outlines, robust_limit

DPI = 100
PERIOD = 60  # milliseconds from frame to frame
GREYS = 8  # shades kept for axes and text
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Map:
    """The plane over which a field is shown.

    title: with the field; unit: of the field; size: metres across and up; axes: their labels; cells: the number of the
    material of each cell, shape (across, up); tints: of each material, shape (n, 3); marks: positions and the radii of
    their spots in pixels; width: of the animation in pixels; shares: the percentile of the values that the colours
    cover,
    and the least factor of their range from frame to frame.
    """

    title: str
    unit: str
    size: tuple[float, float]
    axes: tuple[str, str]
    cells: NDArray[Any]
    tints: Rgb
    marks: Sequence[tuple[tuple[float, float], int]]
    width: int = 720
    shares: tuple[float, float] = (98.0, 0.88)


@dataclass(frozen=True)
class Backdrop:
    """The parts of a picture that do not change from frame to frame.

    canvas: the axes and title as palette indices, shape (height, width); window: left, top, right, bottom of the map
    on it; materials: for each pixel of the map, the palette index of its material's level 0; outline: pixels that
    keep the canvas's own colour; palette: shape (256, 3).
    """

    canvas: Bytes
    window: tuple[int, int, int, int]
    materials: Bytes
    outline: NDArray[np.bool_]
    palette: Bytes


def animate(path: Path, shown: Map, times: Sequence[float], frame: Callable[[int], Array], own: bool) -> None:
    """Draw the frames of all times, seconds; the suffix of `path` (.gif or .mp4) decides how.

    frame: the values of a number, shape (across, up), SI units; own: colours cover each frame's own range of
    amplitudes, by `shown.shares`. Raises UsageError for MP4 without imageio-ffmpeg.
    """
    stage = _stage(shown)
    frames = _frames(stage, shown, times, frame, own)
    with replacing(path) as partial:
        if path.suffix == ".mp4":
            _write_mp4(partial, stage, frames)
        else:
            _write_gif(partial, stage, frames)


def envelope(limits: list[float], fall: float = 0.88, floor_share: float = 2e-3) -> list[float]:
    """The scale of each frame: its own limit, never falling faster than `fall` a frame, nor below a share of the top.

    limits: the robust limit of each frame.
    """
    lowest = floor_share * max(limits)
    scales: list[float] = []
    for limit in limits:
        scales.append(max(limit, lowest, fall * scales[-1] if scales else 0.0))
    return scales


def _frames(
    stage: Backdrop, shown: Map, times: Sequence[float], frame: Callable[[int], Array], own: bool
) -> Iterator[Bytes]:
    percentile, fall = shown.shares
    limits = [robust_limit(frame(number), percentile) for number in range(len(times))]
    scales = envelope(limits, fall) if own else [max(limits)] * len(limits)
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"), 12)
    for number, (time, scale) in enumerate(zip(times, scales, strict=True)):
        caption = f"t = {time * 1e9:5.2f} ns    colours ± {_round(scale):g} {shown.unit}"
        yield _draw(stage, frame(number), _round(scale), caption, font)


def _draw(stage: Backdrop, values: Array, scale: float, caption: str, font: ImageFont.FreeTypeFont) -> Bytes:
    left, top, right, bottom = stage.window
    upright = np.ascontiguousarray(np.nan_to_num(values.T[::-1] / scale, posinf=1.0, neginf=-1.0), np.float32)
    resized = Image.fromarray(upright).resize((right - left, bottom - top), Image.Resampling.BILINEAR)
    half = LEVELS // 2
    level = np.rint(np.clip(np.asarray(resized), -1, 1) * half).astype(np.int16) + half
    frame = stage.canvas.copy()
    window = frame[top:bottom, left:right]
    window[~stage.outline] = (stage.materials + level)[~stage.outline]
    frame[top - 20 : top - 4, left:right] = _grey(_caption(caption, right - left, 16, font))
    return frame


def _stage(shown: Map) -> Backdrop:
    tints, indices = _tints(shown.tints)
    colours = wave_colours(tints).reshape(-1, 3)
    greys = np.linspace(0, 255, GREYS).astype(np.uint8)[:, None].repeat(3, axis=1)
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(colours)] = colours
    palette[255 - GREYS] = OUTLINE
    palette[256 - GREYS :] = greys
    picture, window = _canvas(shown)
    canvas = _grey(picture)
    left, top, right, bottom = window
    cells = _resample(indices[shown.cells], bottom - top, right - left)
    marked = _marks(shown, right - left, bottom - top)
    edges = outlines(_resample(shown.cells, bottom - top, right - left))
    canvas[top:bottom, left:right][edges] = 255 - GREYS
    canvas[top:bottom, left:right][marked] = 256 - GREYS
    return Backdrop(canvas, window, (cells * LEVELS).astype(np.uint8), edges | marked, palette)


def _grey(picture: Bytes) -> Bytes:
    """The palette indices of shades from 0 to 255."""
    return (256 - GREYS + np.rint(picture / 255 * (GREYS - 1))).astype(np.uint8)


def _caption(text: str, width: int, height: int, font: ImageFont.FreeTypeFont) -> Bytes:
    image = Image.new("L", (width, height), 255)
    ImageDraw.Draw(image).text((0, 0), text, fill=0, font=font)
    return np.asarray(image)


def _tints(wanted: Rgb) -> tuple[Bytes, NDArray[np.intp]]:
    """The tints in use, as many as the palette has room for, and for each material the number of the nearest one."""
    tints = np.unique(wanted, axis=0)
    room = (255 - GREYS) // LEVELS
    kept = tints[np.linspace(0, len(tints) - 1, min(room, len(tints))).astype(np.intp)]
    apart = np.abs(wanted[:, None].astype(np.int64) - kept[None]).sum(axis=2)
    return kept, apart.argmin(axis=1)


def _canvas(shown: Map) -> tuple[Bytes, tuple[int, int, int, int]]:
    """Axes, ticks and title in grey, shape (height, width), and the window of the map."""
    width = shown.width // 2 * 2
    inner = width - 72
    map_height = max(40, round(inner * shown.size[1] / shown.size[0]))
    height = (map_height + 92) // 2 * 2
    window = (54, 46, 54 + inner, 46 + map_height)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
        axes = figure.add_axes((54 / width, 1 - (46 + map_height) / height, inner / width, map_height / height))
        axes.set_xlim(0, shown.size[0])
        axes.set_ylim(0, shown.size[1])
        axes.set_xlabel(shown.axes[0])
        axes.set_ylabel(shown.axes[1], labelpad=0)
        axes.locator_params(axis="y", nbins=6)
        figure.text(54 / width, 1 - 8 / height, shown.title, va="top", fontsize=10)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        picture = np.asarray(canvas.buffer_rgba())[..., :3].mean(axis=2)
    return picture.astype(np.uint8)[:height, :width], window


def _resample(cells: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """The nearest cell of each pixel, y upwards, shape (height, width)."""
    columns = (np.arange(width) + 0.5) * cells.shape[0] / width
    rows = (np.arange(height)[::-1] + 0.5) * cells.shape[1] / height
    return cells[np.ix_(columns.astype(np.intp), rows.astype(np.intp))].T


def _marks(shown: Map, width: int, height: int) -> NDArray[np.bool_]:
    """Pixels of the spots."""
    image = Image.new("1", (width, height))
    draw = ImageDraw.Draw(image)
    for (x, y), radius in shown.marks:
        u, v = x / shown.size[0] * width, (1 - y / shown.size[1]) * height
        draw.ellipse((u - radius, v - radius, u + radius, v + radius), fill=1)
    return np.asarray(image, dtype=np.bool_)


def _write_gif(path: Path, stage: Backdrop, frames: Iterator[Bytes]) -> None:
    images = (_paletted(frame, stage) for frame in frames)
    first = next(images)
    first.save(path, format="GIF", save_all=True, append_images=images, duration=PERIOD, loop=0, optimize=False)


def _paletted(frame: Bytes, stage: Backdrop) -> Image.Image:
    image = Image.fromarray(frame, mode="P")
    image.putpalette(stage.palette.tobytes())
    return image


def _write_mp4(path: Path, stage: Backdrop, frames: Iterator[Bytes]) -> None:
    height, width = stage.canvas.shape
    film = film_library().write_frames(str(path), (width, height), fps=1000 / PERIOD, macro_block_size=2, quality=7)
    film.send(None)
    for frame in frames:
        film.send(stage.palette[frame].tobytes())
    film.close()


def _round(value: float) -> float:
    """To two significant digits."""
    return round(value, 1 - floor(log10(value)))
