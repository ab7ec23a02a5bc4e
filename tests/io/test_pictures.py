"""Pictures: what they show is what was given; sizes, palettes, empty and broken fields."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image

from peergrid.errors import UsageError
from peergrid.io.animation import envelope
from peergrid.io.colours import LEVELS, diverging, wave_colours
from peergrid.io.pictures import boundaries, outlines, robust_limit, running_level, titled
from peergrid.io.snapshots import SnapshotWriter
from peergrid.jobs.recording import scale_of
from peergrid.models import Head
from peergrid.models.fdtd import Built, build
from peergrid.models.fdtd.gallery import animation, draw_all
from peergrid.models.fdtd.materials import CONDUCTOR, VACUUM, Material
from peergrid.models.fdtd.model import (
    GridSpec,
    LineSource,
    Output,
    PlaneWave,
    RadarModel,
    ReceiverArray,
    ReceiverSpec,
)
from peergrid.models.fdtd.pictures import picture_model, picture_section, places
from peergrid.models.fdtd.shapes import Box
from peergrid.models.fdtd.tints import MOST_NAMED, material_tints
from peergrid.models.waveforms import Ricker

MODEL = RadarModel(
    GridSpec((0.8, 0.4), 0.01, steps=40),
    model=Head("A small scene"),
    materials=(Material("sand", 4.0),),
    shapes=(Box("sand", (-1, -1), (2, 0.2)), Box("conductor", (0.3, 0.12), (0.4, 0.18))),
    sources=(LineSource((0.4, 0.25), Ricker(5e8)),),
    receivers=(ReceiverSpec((0.5, 0.25), "one/two", ("Ez", "Hx")),),
    receiver_arrays=(ReceiverArray((0.2, 0.25), (0.6, 0.25), 5, "line"),),
    output=Output(snapshots=4, animation="gif", width=320),
)


def sample(built: Built, folder: Path, frames: int = 5, value: float = 1.0) -> Path:
    """Snapshots of a bump that moves to the right."""
    path = folder / "snapshots.h5"
    x = np.linspace(0, 1, built.problem.grid.shape[0])[:, None]
    y = np.linspace(0, 1, built.problem.grid.shape[1])[None, :]
    with SnapshotWriter(path, scale_of(built)) as writer:
        for n in range(frames):
            bump = np.exp(-((x - 0.2 - 0.1 * n) ** 2 + (y - 0.75) ** 2) / 0.01)
            writer.put(4 * n, {"Ez": (value * bump).astype(np.float32)})
    return path


def waves(built: Built) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    names = [name for recorder in built.recorders for name in recorder.traces.values()]
    return {name: np.sin(np.arange(40, dtype=np.float32) / (k + 3)) for k, name in enumerate(names)}


def test_all_pictures_of_a_run_are_made_and_can_be_opened(tmp_path: Path) -> None:
    (tmp_path / "snapshot-Ez-000007.png").write_text("of an earlier run")
    (tmp_path / "snapshot-notes-1.txt").write_text("of the user")
    built = build(MODEL)
    made = draw_all(tmp_path, built, waves(built), sample(built, tmp_path))
    assert [path.name for path in made] == [
        "model.png",
        "receiver-one_two.png",
        "section-line.png",
        *(f"snapshot-Ez-{step:06d}.png" for step in (4, 8, 12, 16)),
        "animation.gif",
    ]
    assert not (tmp_path / "snapshot-Ez-000007.png").exists()
    assert (tmp_path / "snapshot-notes-1.txt").exists()
    for path in made:
        with Image.open(path) as image:
            image.load()
            assert min(image.size) >= 160
            assert path.suffix == ".gif" or round(image.info["dpi"][0]) == 200


def test_nothing_is_drawn_that_was_not_asked_for(tmp_path: Path) -> None:
    built = build(replace(MODEL, output=Output(pictures=False)))
    assert draw_all(tmp_path, built, waves(built), None) == ()


def test_a_run_interrupted_before_its_first_step_can_be_drawn(tmp_path: Path) -> None:
    built = build(MODEL)
    nothing = {name: trace[:0] for name, trace in waves(built).items()}
    made = draw_all(tmp_path, built, nothing, sample(built, tmp_path, frames=0))
    assert [path.name for path in made] == ["model.png"]


def test_the_animation_has_a_frame_for_each_snapshot_and_shows_the_field(tmp_path: Path) -> None:
    built = build(MODEL)
    animation(tmp_path / "a.gif", built, sample(built, tmp_path))
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5
        assert film.size[0] == 320
        reds = []
        for n in range(film.n_frames):
            film.seek(n)
            pixels = np.asarray(film.convert("RGB")).astype(int)
            red = (pixels[..., 0] > 120) & (pixels[..., 1] < 60)
            reds.append(np.argwhere(red).mean(axis=0))
    columns = [column for _, column in reds]
    assert np.all(np.diff(columns) > 15), "the bump moves to the right"
    assert np.ptp([row for row, _ in reds]) < 2, "and keeps its height"
    assert reds[0][0] < 46 + 62, "in the upper half: y points up"


def test_a_title_names_the_model_where_it_has_a_name() -> None:
    assert (titled("Two pipes", "Ez"), titled("", "Ez")) == ("Two pipes: Ez", "Ez")


def test_an_mp4_is_made_where_the_extra_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    built = build(MODEL)
    animation(tmp_path / "a.mp4", built, sample(built, tmp_path))
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


def test_an_mp4_without_the_extra_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    built = build(MODEL)
    with pytest.raises(UsageError) as caught:
        animation(tmp_path / "a.mp4", built, sample(built, tmp_path))
    assert str(caught.value) == (
        "output.animation = 'mp4' needs imageio-ffmpeg, which is not installed; install peergrid with "
        "its extra 'mp4', such as pip install '.[mp4]' in its source folder, or use 'gif'."
    )
    assert not list(tmp_path.glob("*.mp4"))


def test_an_animation_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    built = build(MODEL)
    path = sample(built, tmp_path, frames=0)
    with pytest.raises(UsageError) as caught:
        animation(tmp_path / "a.gif", built, path)
    assert str(caught.value) == f"An animation is expected to have at least one snapshot, '{path}' has none."


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), 1e-30])
def test_empty_and_broken_fields_are_drawn_without_complaint(tmp_path: Path, value: float) -> None:
    built = build(MODEL)
    assert len(draw_all(tmp_path, built, waves(built), sample(built, tmp_path, 2, value))) == 6


def test_many_materials_still_fit_the_palette(tmp_path: Path) -> None:
    media = tuple(Material(f"m{k}", 1.0 + k) for k in range(1, 12))
    shapes = tuple(Box(m.name, (0.06 * k, 0.0), (0.06 * k + 0.06, 0.4)) for k, m in enumerate(media))
    built = build(
        replace(
            MODEL,
            materials=media,
            shapes=(*shapes, Box("conductor", (0.7, 0.1), (0.8, 0.2))),
            sources=(),
        )
    )
    animation(tmp_path / "a.gif", built, sample(built, tmp_path))
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5


def test_the_middle_colour_is_the_tint_and_lightness_falls_evenly_on_both_arms() -> None:
    tints = material_tints((VACUUM, CONDUCTOR, Material("sand", 4.0)))
    assert len({tuple(t) for t in tints}) == 3
    colours = wave_colours(tints)
    np.testing.assert_array_equal(colours[:, LEVELS // 2], tints)
    assert diverging(np.array([0.0])).tolist() == [[255, 255, 255]]
    for end in (-1.0, 1.0):
        luminance = diverging(np.linspace(0, end, 9)) @ [0.2126, 0.7152, 0.0722]
        assert np.all(np.diff(luminance) < -8)


def test_scales() -> None:
    assert robust_limit(np.zeros(9)) == 1.0
    assert robust_limit(np.array([np.nan, 1.0, -2.0])) == pytest.approx(2.0, rel=0.01)
    assert envelope([1.0, 0.1, 0.95, 0.0], fall=0.9) == pytest.approx([1.0, 0.9, 0.95, 0.855])
    assert envelope([1.0, 0.0], fall=0.0, floor_share=0.01) == [1.0, 0.01]
    level = running_level(np.array([[0.0] * 50 + [3.0] * 50, [0.0] * 50 + [4.0] * 50]))
    assert level[75] == pytest.approx(np.sqrt(12.5))
    assert level[10] == pytest.approx(level.max() * 1e-4)
    np.testing.assert_array_equal(boundaries(np.array([[1, 1, 2]])), [[False, True, False]])


def test_a_dollar_in_a_title_is_a_dollar(tmp_path: Path) -> None:
    """Not the start of a formula, which this one would not be."""
    described = RadarModel(GridSpec((0.4, 0.3), 0.01, steps=5), model=Head("plate, $x^{$"))
    picture_model(tmp_path / "model.png", build(described))
    assert (tmp_path / "model.png").exists()


def test_names_that_are_the_same_in_file_names_have_pictures_of_their_own(tmp_path: Path) -> None:
    receivers = tuple(ReceiverSpec((0.2, 0.1), name) for name in ("a/b", "a_b"))
    built = build(RadarModel(GridSpec((0.4, 0.3), 0.01, steps=5), receivers=receivers))
    traces = {name: np.zeros(5, np.float32) for recorder in built.recorders for name in recorder.traces.values()}
    made = draw_all(tmp_path, built, traces, None)
    assert [path.name for path in made] == ["model.png", "receiver-a_b.png", "receiver-a_b-2.png"]
    assert all(path.exists() for path in made)


def test_mixed_soils_have_no_outlines() -> None:
    mixed = np.random.default_rng(1).integers(0, 2, (60, 40))
    assert not outlines(mixed).any()
    layered = np.repeat(np.arange(4), 10)[None, :].repeat(60, axis=0)
    np.testing.assert_array_equal(outlines(layered), boundaries(layered))


@pytest.mark.parametrize("count", [MOST_NAMED, 400])
def test_any_number_of_materials_can_be_told_apart_or_read_off(tmp_path: Path, count: int) -> None:
    media = tuple(Material(f"soil {n}", 1 + n / 40) for n in range(count))
    tints = material_tints((CONDUCTOR, *media)).astype(int)
    assert len({tuple(one) for one in tints[: MOST_NAMED + 1]}) == MOST_NAMED + 1 or count > MOST_NAMED
    if count > MOST_NAMED:
        assert (np.diff(tints[1:].sum(axis=1)) <= 0).all()
    picture_model(tmp_path / "model.png", build(replace(MODEL, materials=(*MODEL.materials, *media))))


def test_sections_stand_over_the_model_where_they_can() -> None:
    assert places(np.array([[0.2, 1.0], [0.3, 1.0]])) == ([0.2, 0.3], "x (m)")
    assert places(np.array([[1.0, 0.2], [1.0, 0.3]])) == ([0.2, 0.3], "y (m)")
    along, words = places(np.array([[0.0, 0.0], [0.3, 0.4]]))
    assert (along, words) == ([0.0, pytest.approx(0.5)], "distance along the receivers (m)")


def test_a_plane_wave_is_a_line_across_the_picture(tmp_path: Path) -> None:
    wave = PlaneWave("-y", 0.28, Ricker(5e8))
    picture_model(tmp_path / "model.svg", build(replace(MODEL, sources=(wave,))))
    picture_model(tmp_path / "point.svg", build(MODEL))
    drawn, other = ((tmp_path / name).read_text() for name in ("model.svg", "point.svg"))
    assert drawn.count('<g id="line2d') == other.count('<g id="line2d') + 1


@pytest.mark.parametrize(("gain", "label"), [("agc", "Ez, automatic gain control (AGC), window"), ("none", "Ez (V/m)")])
def test_sections_have_gain_or_the_amplitudes_as_they_are(tmp_path: Path, gain: Any, label: str) -> None:
    """By the label of the colours, and by its numbers: of the field, or of a ratio."""
    built = build(replace(MODEL, output=Output(gain=gain)))
    strong = {name: 1000 * values for name, values in waves(built).items()}
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        picture_section(tmp_path / "section.svg", built, built.recorders[1:], strong)
    text = (tmp_path / "section.svg").read_text()
    assert label in text
    assert ("AGC" in text) == (gain == "agc")
    assert (">750<" in text) == (gain == "none")


def test_few_receivers_are_larger_than_many(tmp_path: Path) -> None:
    pixels = []
    for name, receivers in (("none", ()), ("one", MODEL.receivers)):
        picture_model(tmp_path / f"{name}.png", build(replace(MODEL, receivers=receivers, receiver_arrays=())))
        with Image.open(tmp_path / f"{name}.png") as picture:
            pixels.append(np.asarray(picture.convert("L"), np.int16))
    assert (abs(pixels[1] - pixels[0]) > 40).sum() > 80


def test_pictures_take_the_format_that_is_asked_for_and_one_range_of_colours(tmp_path: Path) -> None:
    output = replace(MODEL.output, format="pdf", colours="common", animation="none")
    built = build(replace(MODEL, output=output))
    made = draw_all(tmp_path, built, waves(built), sample(built, tmp_path))
    assert {path.suffix for path in made} == {".pdf"}
    assert all(path.read_bytes().startswith(b"%PDF") for path in made)
