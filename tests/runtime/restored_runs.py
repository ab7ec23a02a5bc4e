"""A problem with everything that a run records, and runs of it that stop and go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import peergrid
from peergrid import Grid, Problem, Receiver, Simulation
from peergrid.io.checkpoint import read_state, write_state
from peergrid.result import Result, State

STEPS = 23


@peergrid.stencil
def wave(u, c, pulse, k):  # type: ignore[no-untyped-def]
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + k * c[0, 0] * around + 0.01 * pulse.now


@peergrid.reduction("l2")
def change(u):  # type: ignore[no-untyped-def]
    return u[0, 0] - u.prev[0, 0]


@peergrid.reduction("sum", every=5)
def energy(u, c):  # type: ignore[no-untyped-def]
    return c[0, 0] * u[0, 0] * u[0, 0]


def waves(k: float = 0.2, seed: int = 3) -> Problem:
    grid = Grid((60, 40), ("fixed", "periodic"))
    random = np.random.default_rng(seed)
    u, c = grid.field("u", random.random((60, 40))), grid.field("c", random.random((60, 40)))
    pulse = grid.signal("pulse", random.random(15))
    receivers = [Receiver("a/b", "u", (3, 7)), Receiver("far", "u", (50, 30))]
    return Problem.of(wave(u, c, pulse, k=k), receivers, [change(u), energy(u, c)])


def bits(result: Result) -> dict[str, bytes]:
    """Everything that a run leaves but its times."""
    found = {f"field {name}": values.tobytes() for name, values in result.fields.items()}
    found |= {f"trace {name}": values.tobytes() for name, values in result.traces.items()}
    found |= {f"reduction {name}": one.values.tobytes() for name, one in result.reductions.items()}
    found |= {f"steps {name}": one.steps.tobytes() for name, one in result.reductions.items()}
    return found | {"sha256": result.sha256.encode(), "norms": b"" if result.norms is None else result.norms.tobytes()}


def through(problem: Problem, first: int, path: Path | None = None, **arranged: object) -> State:
    """The state of a run after so many steps; by way of a file where there is one."""
    with Simulation(problem, STEPS, **arranged) as simulation:  # type: ignore[arg-type]
        simulation.run(first)
        state = simulation.state()
    if path is None:
        return state
    write_state(path, state)
    return read_state(path)


def onward(problem: Problem, state: State, **arranged: object) -> Result:
    with Simulation(problem, STEPS, **arranged) as simulation:  # type: ignore[arg-type]
        simulation.restore(state)
        simulation.run(STEPS - state.step)
        return simulation.result()
