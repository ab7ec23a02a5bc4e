"""Schedules after random edits: the checkers agree, and what they accept leaves the right bits."""

from __future__ import annotations

from random import Random

import pytest
from edited_runs import cases, outcome, wrong_runs

from peergrid.schedule.edits import EDITS, edited
from peergrid.schedule.verify import program, prove

CASES = tuple(cases())


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_both_checkers_accept_is_right(number: int) -> None:
    for seed in (number, 1000 + number):
        found = outcome(CASES[number], seed, runs=3)
        assert found.accepted[0] == found.accepted[1], found
        assert not found.wrong, found


def test_every_kind_of_edit_occurs_and_changes_something() -> None:
    names = set()
    for seed in range(400):
        case = CASES[seed % len(CASES)]
        name, schedule = edited(case.schedule, Random(seed))
        assert schedule != case.schedule
        names.add(name.split()[0])
    assert names == {edit.__name__ for edit in EDITS}


def test_runs_that_are_wrong_are_seen() -> None:
    """A schedule without its copies leaves other bits."""
    case = next(case for case in CASES if case.name == "async, 2 devices, depth 1")
    without = type(case.schedule)(
        case.schedule.options, 2, case.schedule.steps, 0, case.schedule.final,
        tuple(op for op in case.schedule.ops if type(op).__name__ != "Copy"),
    )  # fmt: skip
    assert prove(case.plan, program(case.plan, without)).faults
    assert wrong_runs(case, without, 0, 2) == 2
