"""The names of written files stand on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_call import Call
from PIL import Image

import peergrid

PROFILE = Path(peergrid.__file__).parents[2] / "benchmarks" / "results" / "profile-h200-x2.json"
WRITING = [
    (("trace", "MODEL", "-o", "t.json"), "t.json"),
    (("plan", "MODEL", "--machine", "h200-x2", "--timeline", "t.json"), "t.json"),
    (("plan", "MODEL", "--picture", "p.png"), "p.png"),
    (("machine", "--svg", "m.svg"), "m.svg"),
    (("probe", "--profile", str(PROFILE), "-o", "p.json"), "p.json"),
    (("report", str(PROFILE), "-o", "p.html"), "p.html"),
    (("bench", "small", "--only", "256", "--machine", "h200-x2", "-o", "b"), "b/small-foretold.json"),
    (("image", "grey.png", "x", "-o", "i.png"), "i.png"),
]


@pytest.mark.parametrize(("arguments", "name"), WRITING, ids=[f"{a[0]} {name}" for a, name in WRITING])
def test_a_command_names_the_file_that_it_wrote(
    call: Call, model: Path, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "grey.png")
    answer = call(*(model if a == "MODEL" else a for a in arguments))
    assert answer.code == 0, answer.err
    assert (tmp_path / name).stat().st_size
    assert name in answer.out
