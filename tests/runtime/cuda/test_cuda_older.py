"""The value two steps before, `u.prev.prev`: in boxes and beside the cell, however arranged, by NumPy's own count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executions import STEPS, step_by_step
from host_driver import COMPILER, HostDriver
from host_runs import carried_out

from peergrid import Options, Simulation
from peergrid.errors import UsageError
from peergrid.grid import Array, Box, Grid, Index
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Stage, stencil

SHAPES = [(96,), (48, 40), (32, 18, 37)]
ARRANGEMENTS: list[tuple[StrategyName, int, int, int]] = [
    ("serial", 1, 1, 1),
    ("overlap", 1, 1, 2),
    ("overlap", 4, 2, 1),
    ("graph", 4, 4, 2),
    ("peer", 2, 2, 2),
]  # strategy, depth, block, devices


def mean(u: Any, rank: int) -> Any:
    """The mean of the neighbours."""
    unit = np.eye(rank, dtype=int).tolist()
    parts = [u[tuple(side * k for k in one)] for one in unit for side in (-1, 1)]
    return sum(parts[1:], parts[0]) * (0.5 / rank)


@stencil
def older(u: Any, here: Any) -> None:
    at = (0,) * len(here)
    u.next[at] = 0.5 * mean(u, len(here)) + 0.3 * u.prev[at] - 0.2 * u.prev.prev[at]


@stencil
def spread(u: Any, here: Any) -> None:
    u.next[(0,) * len(here)] = 0.5 * mean(u, len(here)) + 0.3 * mean(u.prev.prev, len(here))


@stencil
def plain(u: Any, here: Any) -> None:
    u.next[(0,) * len(here)] = 0.25 * mean(u, len(here))


@stencil
def kept(u: Any, here: Any) -> None:
    u.next[(0,) * len(here)] = u.prev[(0,) * len(here)]


def first_values(shape: Index) -> tuple[Array, Array]:
    """Those of u and u.prev."""
    noise = np.random.default_rng(3)
    return noise.random(shape), noise.random(shape)


def problem_of(shape: Index, kind: str) -> Problem:
    now, before = first_values(shape)
    here, half = [0.0] * len(shape), shape[0] // 2
    u = Grid(shape, "fixed" if kind == "boxes" else "periodic", "float64").field("u", now, prev=before)
    if kind != "boxes":
        return Problem.of([(older if kind == "cell" else spread)(u, here)])
    low, high = Box((0,) * len(shape), (half, *shape[1:])), Box((half, *(0,) * (len(shape) - 1)), shape)
    return Problem.of([Stage((older(u, here).within(low), plain(u, here).within(high)))])


def by_hand(shape: Index, kind: str) -> Array:
    now, before = first_values(shape)
    oldest, inside, half = before, (slice(1, -1),) * len(shape), shape[0] // 2
    if kind == "boxes":
        before = oldest = np.where(np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)) < half, before, now)
    for _ in range(STEPS):
        around, far = (
            np.mean([np.roll(u, s, a) for a in range(u.ndim) for s in (1, -1)], axis=0) for u in (now, oldest)
        )
        new = 0.5 * around + (0.3 * far if kind == "beside" else 0.3 * before - 0.2 * oldest)
        if kind == "boxes":
            new[half:] = 0.25 * around[half:]
            whole = now.copy()
            whole[inside] = new[inside]
            new = whole
        oldest, before, now = before, now, new
    return now


@pytest.mark.parametrize("kind", ["cell", "beside", "boxes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_cpus(shape: Index, kind: str) -> None:
    problem, answer = problem_of(shape, kind), by_hand(shape, kind)
    bits = step_by_step(problem)[0]["u"]
    np.testing.assert_allclose(np.frombuffer(bits).reshape(shape), answer, rtol=0, atol=1e-12)
    for strategy, depth, block, devices in ARRANGEMENTS:
        options = Options(strategy, depth=depth, block=block)
        with Simulation(problem, STEPS, devices=f"cpu:{devices}", options=options) as simulation:
            simulation.run(STEPS)
            assert simulation.gather("u").tobytes() == bits, options


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize("kind", ["cell", "beside", "boxes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_gpus(shape: Index, kind: str) -> None:
    problem = problem_of(shape, kind)
    for strategy, depth, block, devices in ARRANGEMENTS:
        several = 1 if (len(shape), kind) == (3, "boxes") else block  # no kernel makes several steps there
        options = Options(strategy, depth=depth, block=several)
        split = (devices, *(1,) * (len(shape) - 1))
        assert carried_out(problem, split, options, HostDriver()) == step_by_step(problem), options


def test_it_is_refused_where_it_would_be_of_another_step() -> None:
    """Beside the cells that keep it, though the value one step before changes there."""
    u, here = Grid((20,), "periodic").field("u"), [0.0]
    updates = spread(u, here).within(Box((0,), (10,))), kept(u, here).within(Box((10,), (20,)))
    with pytest.raises(UsageError, match=r"reads 'u.prev.prev' at offset \(-1,\) .* but 'u.prev' changes there"):
        Problem.of([Stage(updates)])
