"""Our figures beside those of another program."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_examples import profile

from peergrid.errors import UsageError
from peergrid.probe.beside import Figure, beside, figures, shared
from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import Profile


def ours(*medians: float) -> list[Profile]:
    """One number, once per process."""
    return [profile(Measurement("q", "s", {"a": 1, "b": 2}, median, 0.0, 0.0, (median,))) for median in medians]


def theirs(*medians: float) -> list[tuple[Figure, ...]]:
    return [(Figure("q", {"a": 1}, median),) for median in medians]


def test_medians_over_processes_are_compared() -> None:
    (found,) = beside(theirs(1.0, 9.0, 2.0), ours(4.0, 3.0, 0.0))
    assert (found.median, found.ours, found.off) == (2.0, 3.0, 0.5)
    assert found.processes == (1.0, 9.0, 2.0)
    assert found.our_processes == (4.0, 3.0, 0.0)


def test_what_we_do_not_measure_stands_there_without_us() -> None:
    (found,) = beside([(Figure("q", {"a": 2}, 1.0),)], ours(4.0))
    assert (found.median, found.ours, found.our_processes, found.off) == (1.0, None, (), None)


def test_only_experiments_that_both_have_are_compared() -> None:
    (mine,) = ours(1.0)
    assert shared(theirs(1.0)[0], mine) == (mine.probes[0].name,)
    assert shared([Figure("other", {}, 1.0)], mine) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo line 7: no >&2; exit 3", "but it ended with code 3: line 7: no"),
        ("echo words", "Expecting value"),
        ("""echo '[{"quantity": "q", "at": {}}]'""", "'median'"),
    ],
)
def test_a_program_that_gives_no_figures_is_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    with pytest.raises(UsageError, match="should be a program that prints its figures") as error:
        figures(program, [])
    assert words in str(error.value)
    assert "\n" not in str(error.value)
