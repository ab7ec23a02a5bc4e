"""A program of a user with type hints throughout: the type checker reads it with the package, strictly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import peergrid
from peergrid import Box, Cell, Clock, Expr, Grid, Lookup, Problem, Receiver, Simulation

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@peergrid.stencil
def wave(u: Cell, speed: Cell, k: Expr, weights: Sequence[Expr]) -> None:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    far = sum((w * u[i + 2, 0] for i, w in enumerate(weights)), start=0 * u[0, 0])
    moved = 2 * u[0, 0] - u.prev[0, 0] + k * speed[0, 0] * around + far
    u.next[0, 0] = peergrid.where(abs(around) > 1e-9, moved, u[0, 0])


@peergrid.stencil
def source(u: Cell, pulse: Clock) -> None:
    u.next[0, 0] = u[0, 0] + pulse.now


@peergrid.stencil
def fade(u: Cell, media: Cell, decay: Lookup) -> None:
    u.next[0, 0] = decay[media[0, 0]] * u[0, 0]


@peergrid.reduction("sum", every=10)
def energy(u: Cell) -> Expr:
    return u[0, 0] * u[0, 0]


def main() -> float:
    grid = Grid((64, 48), ("fixed", "periodic"))
    u, speed = grid.field("u"), grid.field("speed", np.full(grid.shape, 0.2))
    pulse = grid.signal("pulse", np.sin(np.linspace(0, np.pi, 20)))
    step = [wave(u, speed, k=0.9, weights=[0.01, 0.02]), source(u, pulse).within(Box.cell((20, 20)))]
    step.append(fade(u, grid.field("media"), grid.table("decay", [0.9, 1.0])))
    problem = Problem.of(step, [Receiver("r", "u", (10, 10))], energy(u))
    seen: list[int] = []

    def look(simulation: Simulation) -> None:
        seen.append(simulation.step)

    result = peergrid.run(problem, 30, devices="cpu:1", every=10, call=look)
    with Simulation(step, 30, devices="cpu:1") as simulation:
        simulation.run(10)
        simulation.set("u", simulation.gather("u") * 2)
        state = simulation.state()
        simulation.restore(state)
        corner = simulation.gather("u", Box((0, 0), (2, 2)))
    return float(result.fields["u"].max() + corner.sum() + len(seen) + result.reductions["energy"].values[-1])


def shared(problem: Problem, comm: Intracomm) -> int:
    with Simulation(problem, 30, devices="cpu:1", comm=comm) as simulation:
        simulation.run(30)
        return simulation.step
