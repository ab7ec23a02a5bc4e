"""Any value for any argument of a public call is taken, or refused in one sentence, never by Python's own error."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import peergrid
from peergrid import (
    Box,
    Grid,
    Options,
    PeergridError,
    Problem,
    Receiver,
    Simulation,
    Stage,
    images,
    inverse,
    models,
    sparse,
    spins,
)
from peergrid.models.wave import Medium, Propagator

GRID = Grid((16, 12))
U = GRID.field("u", 1.0)


@peergrid.stencil
def drift(u, k):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + k * (u[1, 0] - u[0, 0])


@peergrid.reduction("sum")
def total(u: peergrid.Cell) -> peergrid.Expr:
    return u[0, 0]


STEP = drift(U, 0.1)
PROBLEM = Problem.of(STEP, Receiver("r", "u", (3, 3)), total(U))
HERE = Path(__file__).parent
MATRIX = sparse.CsrMatrix.of(np.eye(4))
GRAPH = spins.random_graph(32, 1)
WAVES = Propagator(Medium((12, 12), 10.0, 2000.0))


def on_a_simulation(name: str) -> Callable[..., object]:
    """A method of a simulation as a function of its arguments."""

    def called(**arguments: Any) -> object:
        with Simulation(PROBLEM, 4, devices="cpu:1", kernel="reference") as simulation:
            return getattr(simulation, name)(**arguments)

    return called


def looked_up(**arguments: Any) -> object:
    @peergrid.stencil
    def look_up(u, table):  # type: ignore[no-untyped-def]
        u.next[0, 0] = table[u[0, 0]]

    return look_up(U, GRID.table(**arguments))


def drifting(**arguments: Any) -> object:
    return drift(U, **arguments)


def recorded(**arguments: Any) -> object:
    return Problem.of(STEP, Receiver(**arguments))


CALLS: dict[Callable[..., object], dict[str, object]] = {
    Box: {"lo": (0, 0), "hi": (8, 8)},
    Box.of: {"shape": (8, 8)},
    Box.cell: {"index": (3, 3)},
    Grid: {"shape": (8, 8), "boundary": "fixed", "dtype": "float32"},
    GRID.field: {"name": "v", "init": 0.0, "prev": None, "within": None},
    GRID.profile: {"name": "c", "axis": 0, "values": 1.0},
    GRID.signal: {"name": "s", "samples": [1.0], "slopes": (), "first": 0},
    looked_up: {"name": "t", "values": [1.0]},
    peergrid.stencil: {"function": print},
    drifting: {"k": 0.1},
    STEP.within: {"box": Box((0, 0), (8, 8))},
    total(U).within: {"box": Box((0, 0), (8, 8))},
    Stage: {"updates": [STEP]},
    Problem.of: {"stages": STEP, "receivers": (), "reductions": ()},
    recorded: {"name": "r", "field": "u", "cell": (3, 3)},
    peergrid.reduction: {"kind": "sum", "every": 1, "name": None},
    Options: {"strategy": "overlap", "depth": 1, "block": None, "order": "all", "separate": False, "route": None},
    Simulation: {
        "problem": PROBLEM,
        "steps": 1,
        "devices": "cpu:1",
        "options": None,
        "split": None,
        "kernel": "reference",
        "norm": None,
        "comm": None,
    },
    on_a_simulation("run"): {"steps": 1},
    on_a_simulation("gather"): {"name": "u", "box": None},
    on_a_simulation("own_parts"): {"name": "u"},
    on_a_simulation("views"): {"name": "u"},
    on_a_simulation("set"): {"name": "u", "values": 0.0},
    on_a_simulation("restore"): {"state": None},
    peergrid.read_state: {"path": HERE / "none.h5"},
    peergrid.write_state: {"path": HERE / "none" / "state.h5", "state": None},
    peergrid.save: {"simulation": None, "path": HERE / "none" / "u.h5"},
    peergrid.source_of: {"problem": STEP, "target": "cpu", "steps": None, "strategy": None, "gpus": None},
    peergrid.verify: {"problem": STEP, "devices": "cpu:2", "strategy": "overlap", "depth": 1, "order": "all"},
    peergrid.run_model: {"model": HERE / "none.toml", "devices": None, "depth": None, "checkpoint": None, "call": None},
    peergrid.run_survey: {"model": HERE / "none.toml", "folder": HERE / "none", "resume": False},
    models.read: {"path": HERE / "none.toml"},
    models.parse: {"text": ""},
    images.read: {"path": HERE / "none.png"},
    images.write: {"path": HERE / "none" / "u.png", "pixels": np.zeros((2, 2), np.uint8)},
    sparse.CsrMatrix: {"starts": MATRIX.starts, "columns": MATRIX.columns, "values": MATRIX.values},
    sparse.Products: {"matrix": MATRIX, "vector": np.ones(4)},
    sparse.power_iteration: {"matrix": MATRIX, "devices": "cpu:1", "tolerance": 0.5, "most": 2},
    spins.BipartiteGraph: {"red": GRAPH.red, "blue": GRAPH.blue},
    spins.random_graph: {"per_colour": 32, "seed": 1},
    spins.Relaxation: {"graph": GRAPH, "coupling": 0.5, "seed": 1},
    inverse.forward: {
        "propagator": WAVES,
        "sources": [[50.0, 50.0]],
        "samples": np.ones((1, 3)),
        "receivers": [[60.0, 60.0]],
    },
    inverse.adjoint: {
        "propagator": WAVES,
        "receivers": [[60.0, 60.0]],
        "traces": np.ones((1, 3)),
        "sources": [[50.0, 50.0]],
    },
}
PLACES = [(call, name) for call, arguments in CALLS.items() for name in arguments]
ANYTHING = st.one_of(
    st.sampled_from([None, True, "", "x", "\0", b"x", {}, {1, 2}, object, object(), 1 + 2j, math.nan, math.inf]),
    st.sampled_from(
        [np.zeros(0), np.zeros((2, 2, 2)), np.array(["a"]), np.array([1 + 2j]), np.float32(2), np.bool_(1)]
    ),
    st.sampled_from([Box((0, 0), (4, 4)), Box((0,), (4,)), Box((0, 0), (0, 0)), GRID, U, STEP, PROBLEM]),
    st.integers(-2, 40),
    st.sampled_from([10**12, 2**63, 10**30]),
    st.lists(st.one_of(st.none(), st.integers(-2, 40), st.floats(), st.text(max_size=2)), max_size=3),
    st.lists(st.integers(-2, 2**64), max_size=3).map(tuple),
)


@settings(max_examples=400)
@given(st.sampled_from(PLACES), ANYTHING)
def test_an_argument_of_any_kind_is_taken_or_refused_in_a_sentence(
    place: tuple[Callable[..., object], str], value: object
) -> None:
    call, name = place
    try:
        call(**{**CALLS[call], name: value})
    except PeergridError as refused:
        said = str(refused)
    else:
        said = ""
    assert "\n" not in said


@pytest.mark.parametrize("call", CALLS, ids=lambda call: getattr(call, "__name__", repr(call)))
def test_no_argument_may_be_a_value_of_nothing(call: Callable[..., object]) -> None:
    for name in CALLS[call]:
        with pytest.raises(PeergridError):
            call(**{**CALLS[call], name: object()})
