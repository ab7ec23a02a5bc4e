"""`peergrid image`: a file in, a file out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cli_call import Call

from peergrid import images


def test_an_image_is_divided(call: Call, tmp_path: Path) -> None:
    pixels = np.arange(35, dtype=np.uint16).reshape(5, 7) * 1000
    images.write(tmp_path / "in.tif", pixels)
    answer = call("image", "in.tif", "x / 3", "-o", "out.png", "--devices", "cpu:2", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["shape"] == [5, 7]
    assert np.array_equal(images.read(tmp_path / "out.png"), pixels // 3)
    said = call("image", "in.tif", "x / 3", "-o", "out.png", "--devices", "cpu:2").out
    assert said.startswith("out.png: 7 × 5 pixels of uint16 in ")


def test_what_is_wrong_leaves_no_file(call: Call, tmp_path: Path) -> None:
    images.write(tmp_path / "in.png", np.zeros((3, 3), np.uint8))
    for arguments, sentence in (
        (("in.png", "x ** 2", "-o", "out.png"), "A formula is made of numbers, x, + - * /"),
        (("none.png", "x", "-o", "out.png"), "'none.png' could not be read"),
        (("in.png", "x", "-o", "out.gif"), "ends in .png, .tif, .tiff, got 'out.gif'"),
        (("in.png", "x", "-o", "/proc/none/out.png"), "'/proc/none/out.png' is expected"),
    ):
        answer = call("image", *arguments, "--devices", "cpu:1")
        assert answer.code == 2, answer.err
        assert sentence in answer.err
    assert not list(tmp_path.glob("out*"))
