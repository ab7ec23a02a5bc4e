"""A model or a problem that cannot fit is refused before anything is allocated, with exit code 3."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_call import MODEL, Call

from peergrid import DoesNotFit, Grid, Problem, Simulation, stencil


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_model_that_does_not_fit(call: Call, model: Path, command: str) -> None:
    model.write_text(MODEL.replace("[0.06, 0.04]", "[600.0, 400.0]"))
    answer = call(command, model, "--devices", "cpu:2")
    assert answer.code == 3
    assert answer.err.startswith("The run needs 7,150 GiB of memory and ")
    assert re.search(r"use at most about [\d,]+ cells here", answer.err)
    assert answer.out == ""


def test_a_problem_that_does_not_fit() -> None:
    @stencil
    def halve(u):
        u.next[0, 0] = 0.5 * u[0, 0]

    grid = Grid((1 << 22, 1 << 22))
    with pytest.raises(DoesNotFit, match="The run needs 131,000 GiB of memory"):
        Simulation(Problem.of(halve(grid.field("u"))), 1, devices="cpu:2")
