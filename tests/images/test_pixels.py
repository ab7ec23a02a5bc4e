"""Formulas of pixels: read without being executed, exact for every value, the same on processors and GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peergrid import UsageError, images, maximum
from peergrid.images import gpus
from peergrid.images.formula import parse
from peergrid.images.table import straight, table

TYPES = [np.dtype(np.uint8), np.dtype(np.uint16)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 255, 50000])
def test_division_is_that_of_whole_numbers(dtype: np.dtype[Any], divisor: int) -> None:
    every = np.arange(np.iinfo(dtype).max + 1)
    found = table(parse(f"x / {divisor}"), dtype)
    assert np.array_equal(found, every // divisor)
    line = straight(found)
    assert line is not None
    assert np.array_equal(line.values(len(every)), found)


def test_values_are_cut_off_and_kept_within_the_type() -> None:
    assert list(table(parse("max(x - 20, 0) * 1.2 - 3"), TYPES[0])[[0, 20, 25, 255]]) == [0, 0, 3, 255]
    assert list(table(parse("0 * x / (x - x)"), TYPES[0])[:3]) == [0, 0, 0]  # no number
    assert set(table(parse("3"), TYPES[0])) == {3}
    assert straight(table(parse("sqrt(x) * 16"), TYPES[0])) is None
    assert straight(table(parse("255 - x"), TYPES[0])) is not None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 255), min_size=256, max_size=256) | st.tuples(st.floats(-2, 2), st.floats(-9, 300)))
def test_a_line_has_exactly_the_values(given: list[int] | tuple[float, float]) -> None:
    if isinstance(given, tuple):
        values = np.clip(np.floor(given[0] * np.arange(256) + given[1]), 0, 255).astype(np.uint8)
    else:
        values = np.array(given, np.uint8)
    line = straight(values)
    assert line is None or np.array_equal(line.values(256), values)


@pytest.mark.parametrize(
    "text",
    ["", "x +", "y / 2", "__import__('os')", "x.real", "x if x else 1", "x ** 2", "[x]", "max(x)", "True", "1e31 * x",
     "x / 'a'", "lambda: x", "(" * 400 + "x" + ")" * 400, "abs(x, x)", "min(x, 1, y=2)", "x\n.y"],
)  # fmt: skip
def test_a_text_that_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A formula "):
        table(parse(text), TYPES[0])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (17, 33), (64, 127)])
def test_any_devices_leave_the_same_pixels(dtype: np.dtype[Any], shape: tuple[int, int]) -> None:
    image = np.random.default_rng(1).integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)
    for devices in ("cpu:1", "cpu:3"):
        found = images.apply("x / 3 + 2", image, devices)
        assert np.array_equal(found, image // 3 + 2)
        assert found.dtype == dtype
    assert np.array_equal(images.apply(lambda x: maximum(x, 9.0), image, "cpu:2"), np.maximum(image, 9))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10_000), st.sampled_from([1, 2]), st.integers(1, 9))
def test_parts_hold_every_pixel_once_and_begin_at_whole_loads(pixels: int, width: int, devices: int) -> None:
    found = gpus.parts(pixels, width, devices)
    assert [a for a, b in found] == [0, *(b for a, b in found[:-1])]
    assert found[-1][1] == pixels
    assert all(a * width % gpus.LOAD == 0 for a, _ in found[1:] if a < pixels)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "A.TIFF"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_files_give_back_what_they_were_given(tmp_path: Path, name: str, dtype: np.dtype[Any]) -> None:
    image = np.random.default_rng(2).integers(0, np.iinfo(dtype).max + 1, (7, 13)).astype(dtype)
    images.write(tmp_path / name, image)
    found = images.read(tmp_path / name)
    assert found.dtype == dtype
    assert np.array_equal(found, image)


def test_other_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (4, 4)).save(tmp_path / "colour.png")
    pages = [Image.new("L", (4, 4), page) for page in range(3)]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "colour.png").read_bytes()[:40])
    for name, sentence in (
        ("colour.png", "is expected to be a grey image with 8 or 16 bits a pixel, got one of Pillow's mode 'RGB'"),
        ("stack.tif", "is expected to hold one image, got 3; write each to its own file"),
        ("text.png", "is expected to be a PNG or TIFF image, and is neither"),
        ("nowhere.png", "could not be read: No such file or directory"),
        (".", "could not be read: Is a directory"),
    ):
        with pytest.raises(UsageError, match=sentence):
            images.read(tmp_path / name)
    with pytest.raises(UsageError):
        images.read(tmp_path / "cut.png")
    with pytest.raises(UsageError, match=r"ends in \.png, \.tif, \.tiff, got 'a.jpg'"):
        images.write(tmp_path / "a.jpg", np.zeros((2, 2), np.uint8))
    with pytest.raises(UsageError, match="two axes of uint8 or uint16, got 2 axes of float64"):
        images.write(tmp_path / "a.png", np.zeros((2, 2)))
    with pytest.raises(UsageError, match="expected to be of uint8 or uint16, got int32"):
        images.apply("x", np.zeros((2, 2), np.int32), "cpu:1")
    with pytest.raises(UsageError, match="A formula is text such as 'x / 3', or a function of a pixel, got None"):
        images.apply(None, np.zeros((2, 2), np.uint8), "cpu:1")  # type: ignore[arg-type]
