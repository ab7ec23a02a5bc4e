"""Generated kernels are those of the recorded catalogue; a change of them is a change of the record, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalogue import RECORD
from catalogue.cases import cases
from catalogue.compare import RENEW, checked, compiled, differences
from catalogue.measure import parts
from catalogue.record import Record, read, written

from peergrid.codegen.nvrtc import version

COMPILED = (
    "acoustic one step", "gray-scott passes", "heat3d passes", "jacobi 8", "jacobi norm", "jacobi peer passes",
    "radar one step", "radar passes", "service", "small radar persistent x2", "test cube 2", "yee3d passes",
)  # fmt: skip

pytestmark = [pytest.mark.nvrtc]
pytest.importorskip("cuda.core")
RECORDED = read(RECORD)


@pytest.mark.parametrize("name", cases())
def test_texts_are_as_recorded(name: str) -> None:
    said = checked(cases()[name], RECORDED, version())
    assert not said, "\n".join(("kernels are not as recorded", *said))


@pytest.mark.parametrize("name", COMPILED)
def test_resources_are_as_recorded(name: str) -> None:
    if version() != RECORDED.nvrtc:
        pytest.skip(f"resources are recorded for NVRTC {RECORDED.nvrtc}, here is {version()}: texts alone are compared")
    said = compiled(cases()[name], RECORDED, "sm_90")
    assert not said, "\n".join(("kernels are not as recorded", *said))


def test_no_case_is_left_over() -> None:
    assert {parts(name)[0] for name in RECORDED.entries} == set(cases())


def test_what_changed_is_said() -> None:
    name = "jacobi 8 / sm_90 / stream2d"
    entry = RECORDED.entries[name]
    assert differences({name: entry}, {name: replace(entry, text="0")}) == [
        f"{name}: another text, compiled to the same resources"
    ]
    more = replace(entry, registers=entry.registers + 2, spills=8)
    assert differences({name: entry}, {name: more}) == [
        f"{name}: registers {entry.registers} → {more.registers}, spills {entry.spills} → 8"
    ]
    assert differences({name: entry}, {}) == [f"{name}: gone"]
    assert differences({}, {name: more}) == [
        f"{name}: new, {entry.lines} lines, {more.registers} registers, 8 bytes spilled"
    ]


def test_a_changed_text_is_found_with_any_compiler() -> None:
    """As if the record had been made by another generator, and by another compiler."""
    others = {
        name: replace(entry, text="0", registers=99)
        for name, entry in RECORDED.entries.items()
        if parts(name)[:2] == ("service", "sm_90")
    }
    for here, more in ((RECORDED.nvrtc, 1), ("1.0", 2)):
        said = checked(cases()["service"], Record(RECORDED.nvrtc, {**RECORDED.entries, **others}), here)
        assert said[: len(others)] == [
            f"{name}: registers 99 → {RECORDED.entries[name].registers}" for name in sorted(others)
        ]
        assert said[-1] == RENEW
        assert len(said) == len(others) + more


def test_the_record_is_what_is_written() -> None:
    assert written(RECORDED) == RECORD.read_text(encoding="utf-8")
