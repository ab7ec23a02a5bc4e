"""The check with the oldest NVRTC: a sample of every kind of kernel, and what a compiler refuses is said."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest
from catalogue import RECORD
from catalogue.library import load, refusal, version
from catalogue.measure import parts
from catalogue.own import own_texts
from catalogue.record import read
from catalogue.sample import NEARLY, sample
from catalogue.texts import Text

from peergrid.codegen import nvrtc
from peergrid.codegen.cuda.skeletons import expanded

pytestmark = pytest.mark.nvrtc
pytest.importorskip("cuda.core")
FOLDER = Path(sysconfig.get_path("platlib")) / "nvidia"


def test_a_refused_text_is_told_from_a_good_one() -> None:
    library = load(FOLDER)
    assert version(library) == ".".join(nvrtc.version().split(".")[:2])
    assert refusal(library, "__global__ void good(int* p) { *p = 1; }", "sm_90") == ""
    assert "error" in refusal(library, "__global__ void bad(int* p) { *p = undefined; }", "sm_90")
    assert "error" in refusal(library, "__global__ void good(int* p) { *p = 1; }", "sm_1")


def test_the_sample_has_every_kind_of_kernel() -> None:
    entries = read(RECORD).entries
    pieces = sample(entries, "sm_90")
    text = "\n".join(expanded(piece.source) for piece in pieces)
    kinds = {parts(name)[2].rstrip("0123456789 ") for name in entries}
    assert len(kinds) > 20
    assert not {kind for kind in kinds if not re.search(rf"\b{kind}", text)}
    known = {Text(piece.source).sha256 for piece in pieces}
    for kind in kinds:
        named = [one for name, one in entries.items() if re.search(rf" / sm_90 / {kind}[0-9 ]*$", name)]
        sizes, there = {one.bytes for one in named}, {one.bytes for one in named if one.text in known}
        assert min(there) == min(sizes), kind
        assert max(there) >= NEARLY * max(sizes), kind


def test_kernels_that_depend_on_no_problem_are_tried_too() -> None:
    text = "\n".join(piece.source for piece in own_texts())
    for kernel in (
        "multiply_rows",
        "multiply_slices",
        "half_step_pass",
        "half_step_and_store",
        "each_pixel",
        "of_chunks",
    ):
        assert re.search(rf"\b{kernel}\(", text), kernel


def test_a_folder_without_the_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="pip install --target"):
        load(tmp_path)
